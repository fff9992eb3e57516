import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Node's handle of a connection or a pipe, which has no public API. */
interface WithHandle {
  _handle?: unknown;
}

/** Node reads into its own buffer of this size, of which it makes a new one for each read. */
const READ_BYTES = 64 * 1024;

/** For all sockets: a read and the call with its bytes are one turn. */
const buffer = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * Replaces an open connection, or a pipe of a child that was just started, by one that reads into one buffer for all (`onread`
 * of `net.Socket`, which Node has for connections that it is about to make only), with neither a new buffer nor a turn through
 * its stream for each read.
 * A TLS connection, one with bytes that were received and not taken yet, and any where Node keeps its handle elsewhere stay as
 * they are.
 * @param socket nothing listens to it
 * @param take takes the bytes of one read, which are others after the call; false: reading stops until the stream is read again
 */
export function withReusedReads<S extends Duplex>(socket: S, take: (data: Buffer) => unknown): S {
  const replaced = socket as WithHandle;
  const { _handle: handle, constructor } = replaced;
  const isKnown = constructor === Socket && typeof handle === 'object' && handle !== null;
  if (!isKnown || socket.readableLength > 0) return socket.on('data', take);
  const onread = {
    buffer,
    callback(length: number): boolean {
      return take(buffer.subarray(0, length)) !== false;
    },
  };
  // without its handle it only leaves the server's count of connections, or that of the child's pipes
  replaced._handle = null;
  socket.destroy();
  // its types have `onread` for `connect` only
  return new Socket({ handle, onread } as ConstructorParameters<typeof Socket>[0]) as Duplex as S;
}
