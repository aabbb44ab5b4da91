module example.org/mirror

go 1.21
