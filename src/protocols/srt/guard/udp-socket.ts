import koffi from 'koffi';
import { isIPv6 } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { ListenError } from '../../../core/listen-error.ts';
import { SrtError } from '../error.ts';
import { writeAddress } from '../address.ts';
import { assemble, INSTRUCTION_BYTES, type Instruction } from './bpf.ts';

/** Values of Linux. */
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const F_DUPFD_CLOEXEC = 1030;

interface Libc {
  readonly socket: (domain: number, type: number, protocol: number) => number;
  readonly bind: (fd: number, address: Buffer, length: number) => number;
  readonly setOption: (fd: number, level: number, name: number, value: Buffer, length: number) => number;
  readonly attachFilter: (
    fd: number,
    level: number,
    name: number,
    value: { len: number; filter: Buffer },
    length: number,
  ) => number;
  readonly fcntl: (fd: number, command: number, argument: number) => number;
  readonly close: (fd: number) => number;
}

let loaded: Libc | undefined;

function libc(): Libc {
  loaded ??= bindLibc();
  return loaded;
}

function bindLibc(): Libc {
  const own = koffi.load(null);
  const program = koffi.struct({ len: 'unsigned short', filter: koffi.pointer('void') });
  const size = 'unsigned int';
  // the third argument is variadic
  const fcntl = own.func('int fcntl(int, int, ...)') as (...given: unknown[]) => number;
  return {
    socket: own.func('socket', 'int', ['int', 'int', 'int']),
    bind: own.func('bind', 'int', ['int', 'const void *', size]),
    setOption: own.func('setsockopt', 'int', ['int', 'int', 'int', 'const void *', size]),
    attachFilter: own.func('setsockopt', 'int', ['int', 'int', 'int', koffi.pointer(program), size]),
    fcntl: (fd, command, argument) => fcntl(fd, command, 'int', argument),
    close: own.func('close', 'int', ['int']),
  };
}

const PROGRAM_BYTES = 16;

/** UDP socket of Linux with a packet filter. */
export class UdpSocket {
  /** Descriptor for libsrt, which closes it after `bindAcquire`. */
  readonly descriptor: number;
  /** Duplicate descriptor: remains valid after the first is closed, and its number reused. */
  #own: number | undefined;

  /** @throws ListenError when the port cannot be opened, SrtError naming the system's error when there is no socket */
  constructor(host: string, port: number, ipv4Too: boolean) {
    const { socket, bind, setOption, fcntl, close } = libc();
    this.descriptor = demand(socket(isIPv6(host) ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    try {
      const only = Buffer.from(Int32Array.of(ipv4Too ? 0 : 1).buffer);
      if (isIPv6(host)) demand(setOption(this.descriptor, IPPROTO_IPV6, IPV6_V6ONLY, only, only.length));
      const address = writeAddress(host, port);
      if (bind(this.descriptor, address, address.length) < 0)
        throw new ListenError(lastError(), 'bind', host === '*' ? '0.0.0.0' : host, port);
      this.#own = demand(fcntl(this.descriptor, F_DUPFD_CLOEXEC, 0));
    } catch (error) {
      close(this.descriptor);
      throw error;
    }
  }

  /** Lets only packets in that the program passes. @throws SrtError; RangeError for a program that is too long */
  filter(program: readonly Instruction[]): void {
    if (this.#own === undefined) return;
    const code = assemble(program);
    const value = { len: code.length / INSTRUCTION_BYTES, filter: code };
    demand(libc().attachFilter(this.#own, SOL_SOCKET, SO_ATTACH_FILTER, value, PROGRAM_BYTES));
  }

  /** Closes both descriptors, when libsrt did not take the socket. */
  abandon(): void {
    libc().close(this.descriptor);
    this.close();
  }

  /** Closes the duplicate; the socket ends once libsrt has closed its own. Idempotent. */
  close(): void {
    if (this.#own === undefined) return;
    libc().close(this.#own);
    this.#own = undefined;
  }
}

function demand(result: number): number {
  if (result < 0) throw new SrtError(lastError());
  return result;
}

function lastError(): string {
  return getSystemErrorName(-koffi.errno());
}
