import type { Socket } from 'node:net';
import { FrameWriter } from '../../src/protocols/ovt/media.ts';
import { isRequest, readMessage, writeMessage } from '../../src/protocols/ovt/message.ts';
import { PAYLOAD } from '../../src/protocols/ovt/packet.ts';
import { Receiver } from '../../src/protocols/ovt/receiver.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { DESCRIPTION } from '../unit/protocols/ovt/description.ts';
import { pullFrom } from './hostile-origin.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

const FRAMES = 30;
const VALUES = [null, -1, 0.5, 2 ** 53, '', 'x'.repeat(300), [], {}, true, [[]], 1e300];
/** An origin that has said what it had to say goes by then. */
const PATIENCE_MS = 300;

/** What an edge asks for, whole and broken. */
export function ovtRequests(random: Random, host: string): Buffer {
  const applications = ['describe', 'play', 'stop', 'x', '', '__proto__'];
  const targets = [
    `ovt://${host}/app/live`,
    `ovt://${host}/app/live`,
    `ovt://${host}/app/none/x`,
    'ovt://',
    'x',
    `ovt://${host}/%/%00`,
  ];
  const messages = Array.from({ length: 1 + random.below(4) }, (_, index) => {
    const request = {
      id: random.chance(0.8) ? index + 1 : random.pick(VALUES),
      application: random.pick(applications),
      target: random.pick(targets),
    };
    return writeMessage(PAYLOAD.request, spoilt(request, random, 0.05) as object, random.below(2 ** 31));
  });
  const bytes = Buffer.concat(messages);
  return random.chance(0.2) ? bytes : mutate(bytes, random, bytes);
}

/** An origin that is pulled from and lies: in what it describes, in its answers, in its media. */
export function hostileOvtOrigin(kiln: Kiln, random: Random): Promise<void> {
  return pullFrom(
    kiln,
    random,
    (port) => `ovt://127.0.0.1:${port}/app/x`,
    (socket) => converse(socket, random),
  );
}

function converse(socket: Socket, random: Random): void {
  const write = (bytes: Buffer): void => {
    if (!socket.destroyed) socket.write(random.chance(0.7) ? bytes : mutate(bytes, random, bytes));
  };
  const answer = (request: unknown): void => {
    if (!isRequest(request)) return;
    const { id, application } = request;
    const contents =
      application === 'describe' ? { contents: spoilt(DESCRIPTION, random, random.pick([0, 0, 0.02])) } : {};
    write(
      writeMessage(
        PAYLOAD.response,
        spoilt({ id, application, code: 200, message: 'm', ...contents }, random, 0.01) as object,
        0,
      ),
    );
    if (application === 'play') for (const piece of media(random)) write(piece);
    setTimeout(() => socket.end(), random.below(PATIENCE_MS));
  };
  const receiver = new Receiver(
    { messageBytes: 100_000, frameBytes: 0 },
    {
      message: (text) => answer(readMessage(text)),
      frame: () => {},
      loss: () => {},
    },
  );
  socket.on('data', (bytes: Buffer) => receiver.push(bytes));
}

function media(random: Random): Buffer[] {
  const writer = new FrameWriter(random.below(2 ** 16));
  const pieces: Buffer[] = [];
  for (let i = 0; i < FRAMES; i++) {
    const track = random.chance(0.95) ? i % 2 : random.below(300);
    const times = random.chance(0.9)
      ? { pts: i * 3000, dts: i * 3000 }
      : { pts: random.below(2 ** 40), dts: random.below(2 ** 40) };
    const info = {
      ...times,
      track,
      duration: 0,
      mediaType: i % 2,
      key: i % 10 === 0,
      bitstream: random.below(8),
      packetType: random.below(5),
    };
    const data = random.bytes(random.below(3000));
    writer.write(info, [data], data.length, (piece) => pieces.push(Buffer.from(piece)));
  }
  return pieces;
}

/** The same JSON with other values here and there. */
function spoilt(node: unknown, random: Random, share: number): unknown {
  if (random.chance(share)) return random.pick(VALUES);
  if (Array.isArray(node)) return node.map((each) => spoilt(each, random, share));
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, spoilt(value, random, share)]));
}
