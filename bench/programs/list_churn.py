x = []
for i in range(200000):
    x.append(i)
    if len(x) > 100:
        x.pop()
