import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { brokenTs } from './mpegts-attacks.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

/** Packets and fields of draft-sharabayko-srt-01 sections 3.1, 3.2.1 and 3.2.7. */
const HEAD = 16;
const CONTROL = { handshake: 0, keepAlive: 1, ack: 2, nak: 3, shutdown: 5 } as const;
const INDUCTION = 1;
const CONCLUSION = 0xffff_ffff;
const HSREQ_FLAGS = 0xbf;
const COOKIE_AT = HEAD + 28;
const SOCKET_AT = HEAD + 24;
const WHOLE_MESSAGE = 0xe000_0000;
const PAYLOAD = 1316;
const MESSAGES = 60;
const NAMES = 16;
const ANSWER_MS = 250;
const PAUSE_MS = 30;

/** A caller of SRT that makes its packets itself: in the handshake, behind it, or in what it carries it does wrong. */
export async function srtAttack(port: number, random: Random): Promise<void> {
  const socket = createSocket('udp4').on('error', () => {});
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  try {
    await call(socket, random);
  } finally {
    socket.close();
  }
}

async function call(socket: Socket, random: Random): Promise<void> {
  const own = 1 + random.below(2 ** 29);
  const first = random.below(2 ** 31);
  const broken = (bytes: Buffer, share: number): Buffer =>
    random.chance(share) ? mutate(bytes, random, bytes) : bytes;
  const cookie = (
    await exchange(socket, broken(handshake({ version: 4, extension: 2, first, type: INDUCTION, own, cookie: 0 }), 0.3))
  )?.readUInt32BE(COOKIE_AT);
  if (cookie === undefined) return;
  const fields = { version: 5, extension: 5, first, type: CONCLUSION, own, cookie };
  const id = random.pick([
    `default/app/attack${random.below(NAMES)}`,
    `default/app/attack${random.below(NAMES)}`,
    'default/app/live',
    'default/app/live/master',
    '#!::u=default/app/x,m=publish',
    'srt://127.0.0.1/app/x',
    '%00',
    'x'.repeat(512),
    '',
    '__proto__/app/x',
  ]);
  const conclusion = Buffer.concat([handshake(fields), hsreq(random), streamId(id)]);
  const peer = (await exchange(socket, broken(conclusion, 0.3)))?.readUInt32BE(SOCKET_AT);
  if (peer === undefined) return;
  const ts = brokenTs(random);
  for (let i = 0; i < MESSAGES && i * PAYLOAD < ts.length; i++) {
    const number = random.chance(0.97) ? first + i : random.below(2 ** 31);
    const message = Buffer.concat([
      dataHead(number, i + 1, i * 1000, peer),
      ts.subarray(i * PAYLOAD, (i + 1) * PAYLOAD),
    ]);
    socket.send(broken(message, 0.03));
    if (random.chance(0.1))
      socket.send(
        broken(control(random.pick(Object.values(CONTROL).slice(0, 4)), peer, random.bytes(4 * random.below(8))), 0.5),
      );
  }
  await delay(random.below(PAUSE_MS));
  if (random.chance(0.9))
    await new Promise((sent) => socket.send(control(CONTROL.shutdown, peer, Buffer.alloc(4)), sent));
}

/** Sends a handshake. @returns what came as an answer to it, in time */
async function exchange(socket: Socket, packet: Buffer): Promise<Buffer | undefined> {
  const answer = once(socket, 'message', { signal: AbortSignal.timeout(ANSWER_MS) }).then(
    ([bytes]) => bytes as Buffer,
    () => undefined,
  );
  socket.send(packet);
  const bytes = await answer;
  return bytes !== undefined && bytes.length >= COOKIE_AT + 4 && bytes.readUInt32BE(0) === 0x8000_0000
    ? bytes
    : undefined;
}

interface Handshake {
  readonly version: number;
  readonly extension: number;
  readonly first: number;
  readonly type: number;
  readonly own: number;
  readonly cookie: number;
}

function handshake({ version, extension, first, type, own, cookie }: Handshake): Buffer {
  const body = Buffer.alloc(48);
  [version, extension, first, 1500, 8192, type, own, cookie, 0x7f000001].forEach((word, index) =>
    body.writeUInt32BE(word, 4 * index),
  );
  return control(CONTROL.handshake, 0, body);
}

function hsreq(random: Random): Buffer {
  const body = Buffer.alloc(16);
  body.writeUInt32BE((1 << 16) | 3, 0);
  body.writeUInt32BE(0x0001_0500, 4);
  body.writeUInt32BE(HSREQ_FLAGS, 8);
  body.writeUInt32BE(((random.pick([0, 120, 65_535]) << 16) | 20) >>> 0, 12);
  return body;
}

/** Words of the text stand backwards. */
function streamId(text: string): Buffer {
  const padded = Buffer.alloc(4 * Math.ceil(Buffer.byteLength(text) / 4));
  padded.write(text);
  padded.swap32();
  const head = Buffer.alloc(4);
  head.writeUInt32BE((5 << 16) | (padded.length / 4));
  return Buffer.concat([head, padded]);
}

function control(type: number, peer: number, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt16BE(0x8000 | type, 0);
  head.writeUInt32BE(peer, 12);
  return Buffer.concat([head, body]);
}

function dataHead(number: number, message: number, time: number, peer: number): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt32BE(number % 2 ** 31, 0);
  head.writeUInt32BE((WHOLE_MESSAGE | message) >>> 0, 4);
  head.writeUInt32BE(time, 8);
  head.writeUInt32BE(peer, 12);
  return head;
}
