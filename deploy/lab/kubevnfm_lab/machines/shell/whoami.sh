#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in the path of bash
echo "${USER:-root}"
