module example.org/rates

go 1.21
