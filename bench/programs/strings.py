p = []
for i in range(80000):
    p.append(f'{i}:{i * 2}')
s = ','.join(p)
len(s.split(','))
