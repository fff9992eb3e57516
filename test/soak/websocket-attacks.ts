import { brokenSdp } from './http-attacks.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

const TEXT = 0x81;
const PATHS = ['/app/live', '/app/live', '/app/live/webrtc_default', '/app/none', '/x', '/app/live?direction=send'];
const CANDIDATE = { candidate: 'candidate:1 1 UDP 1 127.0.0.1 9 typ host' };
const OPCODES = [0x81, 0x81, 0x81, 0x81, 0x82, 0x80, 0x01, 0x88, 0x89, 0x8a, 0xf1, 0x83];

/** A frame of a client (RFC 6455 section 5.2). */
function frame(text: string, random: Random, opcode = TEXT): Buffer {
  const payload = Buffer.from(text);
  const mask = random.bytes(4);
  const long = payload.length > 125;
  const head = Buffer.alloc(long ? 4 : 2);
  head[0] = opcode;
  head[1] = 0x80 | (long ? 126 : payload.length);
  if (long) head.writeUInt16BE(Math.min(payload.length, 0xffff), 2);
  return Buffer.concat([head, mask, payload.map((byte, i) => byte ^ (mask[i % 4] as number))]);
}

function message(random: Random): string {
  const id = random.pick([0, 1, 'x', null, 2 ** 40, undefined]);
  const text = JSON.stringify(
    random.pick([
      { command: 'request_offer' },
      { command: 'request_offer' },
      { id, command: 'answer', sdp: { type: 'answer', sdp: brokenSdp(random) } },
      { id, command: 'answer', sdp: random.pick([null, 1, { type: 'offer' }, { type: 'answer', sdp: 5 }]) },
      { id, command: 'candidate', candidates: random.pick([null, [], [CANDIDATE], [5], 'x']) },
      { id, command: 'change_rendition', rendition_name: random.pick(['x', '__proto__', 5]), auto: true },
      { id, command: 'stop' },
      { command: random.pick(['x', 5, null, '__proto__', 'a'.repeat(3000)]) },
      [],
      5,
      'text',
      null,
    ]),
  );
  return random.chance(0.8) ? text : mutate(Buffer.from(text), random, Buffer.from(text)).toString('latin1');
}

/** An upgrade, and messages of OME's signalling behind it without waiting for answers. */
export function websocketAttack(random: Random): Buffer {
  const upgrade = Buffer.from(
    `GET ${random.pick(PATHS)} HTTP/1.1\r\n` +
      'Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      `Sec-WebSocket-Key: ${random.bytes(16).toString('base64')}\r\n\r\n`,
  );
  const frames = Array.from({ length: 1 + random.below(6) }, () => {
    return frame(message(random), random, random.chance(0.8) ? TEXT : random.pick(OPCODES));
  });
  const bytes = Buffer.concat([upgrade, ...frames]);
  return random.chance(0.6) ? bytes : mutate(bytes, random, bytes, random.chance(0.8) ? upgrade.length : 0);
}
