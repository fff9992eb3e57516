import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { Watchdog } from '../../../src/lib/watchdog.ts';

/** Packets of draft-sharabayko-srt-01 section 3.2, made by hand. */
export const CONTROL = {
  handshake: 0,
  keepAlive: 1,
  ack: 2,
  nak: 3,
  congestion: 4,
  shutdown: 5,
  ackAck: 6,
  dropRequest: 7,
  peerError: 8,
} as const;
export const INDUCTION = 1;
export const CONCLUSION = 0xffff_ffff;
const HEAD_BYTES = 16;
const OWN_SOCKET = 4711;
const TYPE_AT = HEAD_BYTES + 20;
const SOCKET_AT = HEAD_BYTES + 24;
const COOKIE_AT = HEAD_BYTES + 28;
const HSREQ = [(1 << 16) | 3, 0x0001_0501, 0xbf, (120 << 16) | 120];
const ANSWER_MS = 2000;

export interface Handshake {
  readonly sequence?: number;
  readonly packetBytes?: number;
  readonly window?: number;
  readonly type?: number;
  readonly cookie?: number;
}

export function control(type: number, socket: number, ...body: number[]): Buffer {
  return words((0x8000 << 16) | (type << 16), 1, 0, socket, ...body);
}

export function handshake({
  sequence = 1000,
  packetBytes = 1500,
  window = 8192,
  type = CONCLUSION,
  cookie = 0,
}: Handshake): Buffer {
  const isFirst = type === INDUCTION;
  const fields = [
    isFirst ? 4 : 5,
    isFirst ? 2 : 1,
    sequence,
    packetBytes,
    window,
    type,
    OWN_SOCKET,
    cookie,
    0x7f00_0001,
    0,
    0,
    0,
  ];
  return control(CONTROL.handshake, 0, ...fields, ...(isFirst ? [] : HSREQ));
}

export function data(sequence: number, socket: number, bytes: Buffer): Buffer {
  return Buffer.concat([words(sequence, 0xe000_0001, 0, socket), bytes]);
}

/** A caller that says what it likes. */
export class RawCaller {
  readonly #socket: Socket;

  static async open(port: number): Promise<RawCaller> {
    const socket = createSocket('udp4').on('error', () => {});
    socket.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new RawCaller(socket);
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** @returns the number of the listener's socket; undefined when it is not let in, or there is no answer in time */
  async connect(fields: Handshake = {}): Promise<number | undefined> {
    const first = await this.#ask(handshake({ ...fields, type: INDUCTION }));
    const cookie = first?.readUInt32BE(COOKIE_AT);
    const answer = cookie === undefined ? undefined : await this.#ask(handshake({ ...fields, cookie }));
    return answer?.readUInt32BE(TYPE_AT) === CONCLUSION ? answer.readUInt32BE(SOCKET_AT) : undefined;
  }

  send(packet: Buffer): Promise<void> {
    return new Promise((sent) => this.#socket.send(packet, () => sent()));
  }

  close(): void {
    this.#socket.close();
  }

  async #ask(packet: Buffer): Promise<Buffer | undefined> {
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
    const late = new Watchdog(ANSWER_MS, () => resolve(undefined));
    this.#socket.once('message', resolve);
    await this.send(packet);
    const bytes = await promise;
    late.close();
    this.#socket.off('message', resolve);
    return bytes !== undefined && bytes.length > COOKIE_AT ? bytes : undefined;
  }
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, index) => bytes.writeUInt32BE(value >>> 0, 4 * index));
  return bytes;
}
