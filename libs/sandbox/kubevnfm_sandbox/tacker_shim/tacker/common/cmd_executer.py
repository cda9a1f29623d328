"""Commands on machines, over SSH with a password."""

import paramiko

from tacker.common import exceptions


class CommandResult:
    """What a command left."""

    def __init__(self, cmd, stdout, stderr, return_code):
        self.__cmd = cmd
        self.__stdout = stdout
        self.__stderr = stderr
        self.__return_code = return_code

    def get_command(self):
        return self.__cmd

    def get_stdout(self):
        return self.__stdout

    def get_stderr(self):
        return self.__stderr

    def get_return_code(self):
        return self.__return_code

    def __str__(self):
        return "cmd: %s, stdout: %s, stderr: %s, return code: %s" % (
            self.__cmd, self.__stdout, self.__stderr, self.__return_code
        )


class RemoteCommandExecutor:
    """A session; lines of output as lists, as paramiko gives them."""

    def __init__(self, user, password, host, timeout=10):
        self.__ssh = paramiko.SSHClient()
        self.__ssh.set_missing_host_key_policy(paramiko.AutoAddPolicy())
        try:
            self.__ssh.connect(
                host, username=user, password=password, timeout=timeout, look_for_keys=False, allow_agent=False
            )
        except paramiko.AuthenticationException as error:
            raise exceptions.NotAuthorized("%s refuses the log-in of %s" % (host, user)) from error

    def close_session(self):
        self.__ssh.close()

    def execute_command(self, cmd, input_data=None):
        stdin, stdout, stderr = self.__ssh.exec_command(cmd)
        if input_data:
            stdin.write(input_data)
            stdin.flush()
        lines, errors = stdout.readlines(), stderr.readlines()
        return CommandResult(cmd, lines, errors, stdout.channel.recv_exit_status())
