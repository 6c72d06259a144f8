x = [(i * 7919) % 100003 for i in range(100000)]
x.sort()
y = sorted(x, key=lambda v: -v)
