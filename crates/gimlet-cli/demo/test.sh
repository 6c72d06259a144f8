# Checks average.sh; prints what is wrong and fails if anything is.
. ./average.sh

check() {
    expected=$1
    shift
    actual=$(average "$@")
    if [ "$actual" != "$expected" ]; then
        echo "FAIL: average $* is $actual, expected $expected"
        exit 1
    fi
    echo "ok: average $* is $actual"
}

check 4 4
check 3 2 3 4
check 5 1 9
echo "all tests passed"
