module github.com/googleapis/enterprise-certificate-proxy

go 1.26.0
