import type { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';

/** Values of Linux. */
const IPPROTO_TCP = 6;
const TCP_USER_TIMEOUT = 18;

/** Node's handle of a connection, whose descriptor has no public API. */
interface WithHandle {
  readonly _handle?: { readonly fd?: number } | null;
}

/**
 * Has the system end a connection (ETIMEDOUT) whose peer acknowledges nothing of what was sent to it for so long. Keep-alive does
 * not find such a peer: no probes are sent while data is unacknowledged, which is repeated for a quarter of an hour (tcp(7),
 * TCP_USER_TIMEOUT). Only on Linux; elsewhere nothing happens.
 * @throws Error naming the system's error
 */
export async function limitUnacknowledged(socket: Socket, milliseconds: number): Promise<void> {
  if (process.platform !== 'linux') return;
  // koffi never frees what it makes for a function
  const { koffi, setOption } = await (system ??= bindSystem());
  const descriptor = (socket as WithHandle)._handle?.fd;
  // the connection has ended since
  if (descriptor === undefined || descriptor < 0) return;
  const value = Buffer.from(Int32Array.of(milliseconds).buffer);
  const result = setOption(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, value, value.length);
  if (result < 0) throw new Error(`TCP_USER_TIMEOUT could not be set: ${getSystemErrorName(-koffi.errno())}`);
}

let system: ReturnType<typeof bindSystem> | undefined;

/** koffi is loaded for the first connection that needs it. */
async function bindSystem() {
  const { default: koffi } = await import('koffi');
  const types = ['int', 'int', 'int', 'const void *', 'unsigned int'];
  const setOption: (fd: number, level: number, name: number, value: Buffer, length: number) => number = koffi
    .load(null)
    .func('setsockopt', 'int', types);
  return { koffi, setOption };
}
