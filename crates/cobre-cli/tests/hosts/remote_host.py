#!/usr/bin/env python3
"""A host and the remote shell to it, without a network: what sshd and ssh do, over a Unix socket.

serve DIRECTORY HOST   runs command lines for HOST, each with an environment of its own; notes their processes
DIRECTORY HOST LINE    runs LINE on HOST: standard input and output are those of the command there
"""

import os
import socket
import subprocess
import sys
import threading
import time


def place(directory, host):
    return os.path.join(directory, host)


def note(directory, host, what, pid):
    with open(place(directory, host) + "." + what, "a") as file:
        file.write(f"{pid}\n")


def copy(read, write, end):
    try:
        while data := read():
            write(data)
    except OSError:
        pass
    try:
        end()
    except OSError:
        pass


def session(directory, host, connection):
    line = b""
    while not line.endswith(b"\0"):
        piece = connection.recv(1)
        if not piece:
            return
        line += piece
    login = {"PATH": os.environ["PATH"], "HOME": "/", "HOST_NAME": host}
    command = subprocess.Popen(
        ["sh", "-c", line[:-1].decode()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=login, start_new_session=True, bufsize=0, cwd="/")
    note(directory, host, "agent", command.pid)
    # A client that is gone ends the input of the command and nothing else, as with sshd.
    threading.Thread(target=copy, daemon=True, args=(
        lambda: connection.recv(65536), command.stdin.write, command.stdin.close)).start()
    copy(lambda: command.stdout.read(65536), connection.sendall, lambda: connection.shutdown(socket.SHUT_RDWR))
    command.wait()


def serve(directory, host):
    path = place(directory, host)
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(8)
    os.rename(path + ".new", path)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=session, daemon=True, args=(directory, host, connection)).start()


def run(directory, host, line):
    note(directory, host, "client", os.getpid())
    with open(place(directory, host) + ".line", "a") as file:
        file.write(line + "\n")
    if os.path.exists(place(directory, host) + ".silent"):
        # A host that is off: nothing answers, and nothing says so.
        time.sleep(600)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(place(directory, host))
    except OSError as error:
        sys.exit(f"connect to {host}: {error.strerror}")
    connection.sendall(line.encode() + b"\0")
    threading.Thread(target=copy, daemon=True, args=(
        lambda: os.read(0, 65536), connection.sendall, lambda: connection.shutdown(socket.SHUT_WR))).start()
    copy(lambda: connection.recv(65536), lambda data: os.write(1, data), lambda: None)


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    run(sys.argv[1], sys.argv[2], " ".join(sys.argv[3:]))
