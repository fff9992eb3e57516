import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Endpoint } from './values.ts';

const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const MAGIC_COOKIE = 0x2112a442;
const HEADER_BYTES = 20;
const MAPPED_ADDRESS = 0x0001;
const XOR_MAPPED_ADDRESS = 0x0020;
const IPV4 = 1;
const RETRANSMIT_MS = 500;

/** A binding request without attributes (RFC 8489 section 5). @param transaction 12 random bytes */
export function bindingRequest(transaction: Buffer): Buffer {
  const message = Buffer.alloc(HEADER_BYTES);
  message.writeUInt16BE(BINDING_REQUEST, 0);
  message.writeUInt32BE(MAGIC_COOKIE, 4);
  transaction.copy(message, 8);
  return message;
}

/** IPv4 address in the success response to a binding request (RFC 8489 sections 14.1, 14.2); undefined for other messages. */
export function mappedAddress(message: Buffer, transaction: Buffer): string | undefined {
  if (message.length < HEADER_BYTES || message.readUInt16BE(0) !== BINDING_SUCCESS) return undefined;
  if (message.readUInt32BE(4) !== MAGIC_COOKIE || !message.subarray(8, 20).equals(transaction)) return undefined;
  const end = HEADER_BYTES + message.readUInt16BE(2);
  if (end > message.length) return undefined;
  let plain: string | undefined;
  for (let at = HEADER_BYTES; at + 4 <= end;) {
    const type = message.readUInt16BE(at);
    const length = message.readUInt16BE(at + 2);
    const value = message.subarray(at + 4, Math.min(at + 4 + length, end));
    if (value.length >= 8 && value.readUInt8(1) === IPV4) {
      if (type === XOR_MAPPED_ADDRESS) return dotted((value.readUInt32BE(4) ^ MAGIC_COOKIE) >>> 0);
      if (type === MAPPED_ADDRESS) plain = dotted(value.readUInt32BE(4));
    }
    at += 4 + Math.ceil(length / 4) * 4;
  }
  return plain;
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');
}

/**
 * Asks a STUN server for the IPv4 address from which it sees this machine.
 * @throws Error the server cannot be reached or does not answer in time
 */
export async function askStun({ host, port }: Endpoint, timeoutMs: number): Promise<string> {
  const socket = createSocket('udp4');
  const transaction = randomBytes(12);
  const signal = AbortSignal.timeout(timeoutMs);
  const request = bindingRequest(transaction);
  const send = (): void =>
    socket.send(request, port, host, (error) => {
      if (error) socket.emit('error', error);
    });
  send();
  const again = setInterval(send, RETRANSMIT_MS);
  try {
    for (;;) {
      const [message] = (await once(socket, 'message', { signal })) as [Buffer];
      const address = mappedAddress(message, transaction);
      if (address !== undefined) return address;
    }
  } catch (error) {
    throw signal.aborted ? new Error(`no answer in ${timeoutMs} ms`) : error;
  } finally {
    clearInterval(again);
    socket.on('error', () => {});
    socket.close();
  }
}
