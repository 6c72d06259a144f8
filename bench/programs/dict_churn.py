d = {}
for i in range(150000):
    d[i % 1000] = d.get(i % 1000, 0) + i
