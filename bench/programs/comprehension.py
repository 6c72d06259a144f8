for _ in range(5):
    x = [i * i for i in range(60000) if i % 3]
