# average NUMBER...: prints the mean of its arguments, rounded down.
average() {
    sum=0
    for number in "$@"; do
        sum=$((sum + number))
    done
    echo $((sum / ($# + 1)))
}
