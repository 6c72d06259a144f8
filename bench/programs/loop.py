t = 0
for i in range(400000):
    t += i * 2
