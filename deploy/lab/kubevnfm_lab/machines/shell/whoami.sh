#!@BASH@
echo "${USER:-root}"
