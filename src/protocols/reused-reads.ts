import { Socket } from 'node:net';

/** Node's handle of a connection or a pipe, which has no public API. */
interface WithHandle {
  _handle?: unknown;
}

/** Node reads into its own buffer of this size, of which it makes a new one for each read. */
const READ_BYTES = 64 * 1024;

/** For all sockets: a read and the call with its bytes are one turn. */
const buffer = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * Replaces a connection that was just accepted, or a pipe of a child that was just started, by one that reads into one buffer
 * for all (`onread` of `net.Socket`, which Node has for clients only), with neither a new buffer nor a turn through its stream
 * for each read.
 * A TLS connection, one of which something was read already, and any where Node keeps its handle elsewhere stay as they are.
 * @param socket nothing listens to it
 * @param take takes the bytes of one read, which are others after the call
 */
export function withReusedReads(socket: Socket, take: (data: Buffer) => void): Socket {
  const accepted = socket as WithHandle;
  const { _handle: handle } = accepted;
  const isKnown = socket.constructor === Socket && typeof handle === 'object' && handle !== null;
  if (!isKnown || socket.bytesRead > 0) return socket.on('data', take);
  const onread = {
    buffer,
    callback(length: number): boolean {
      take(buffer.subarray(0, length));
      return true;
    },
  };
  // without its handle it only leaves the server's count of connections, or that of the child's pipes
  accepted._handle = null;
  socket.destroy();
  // its types have `onread` for `connect` only
  return new Socket({ handle, onread } as ConstructorParameters<typeof Socket>[0]);
}
