import { duplexPair, type Duplex } from 'node:stream';
import { descriptionOf } from '../../../src/protocols/ovt/description.ts';
import { FrameWriter, type Frame } from '../../../src/protocols/ovt/media.ts';
import { isRequest, readMessage, writeMessage } from '../../../src/protocols/ovt/message.ts';
import { PAYLOAD } from '../../../src/protocols/ovt/packet.ts';
import { Receiver } from '../../../src/protocols/ovt/receiver.ts';

/** An origin that says and sends what a test tells it to. */
export class Origin {
  /** What a client gets as its connection. */
  readonly connection: { readonly stream: Duplex; readonly target: string };
  readonly stream: Duplex;
  readonly #writer = new FrameWriter(9);

  /** @param contents of the answer to describe; a number: the code of a refusal; undefined: no answer */
  constructor(contents: unknown) {
    const [near, far] = duplexPair();
    this.stream = far;
    this.connection = { stream: near, target: 'ovt://origin/app/talk' };
    const receiver = new Receiver(
      { messageBytes: 10_000, frameBytes: 0 },
      {
        message: (text) => this.#answer(readMessage(text), contents),
        frame: () => {},
        loss: () => {},
      },
    );
    far.on('data', (bytes: Buffer) => receiver.push(bytes)).on('error', () => {});
  }

  say(message: object): void {
    this.stream.write(writeMessage(PAYLOAD.response, message, 0));
  }

  send(frame: Partial<Frame> & { readonly data: Buffer }): void {
    const info = {
      track: 0,
      pts: frame.dts ?? 0,
      dts: 0,
      duration: 0,
      mediaType: 0,
      key: true,
      bitstream: 1,
      packetType: 3,
      ...frame,
    };
    const pieces: Buffer[] = [];
    this.#writer.write(info, [frame.data], frame.data.length, (piece) => pieces.push(piece));
    this.stream.write(Buffer.concat(pieces));
  }

  #answer(request: unknown, contents: unknown): void {
    if (!isRequest(request) || contents === undefined) return;
    const { id, application } = request;
    const code = typeof contents === 'number' ? contents : 200;
    this.say({ id, application, code, message: 'm', ...(application === 'describe' && code === 200 && { contents }) });
  }
}

const track = { timebaseNum: 1, bitrate: 0, startFrameTime: 0, lastFrameTime: 0 };

/** A description of a picture with a clock of milliseconds. */
export function pictureOf(codecId: number, config?: Buffer, id = 0) {
  return {
    ...track,
    id,
    codecId,
    mediaType: 0,
    timebaseDen: 1000,
    ...(config && { decoderConfig: config.toString('base64') }),
  };
}

/** The same of a sound. */
export function soundOf(codecId: number, config?: Buffer, id = 1) {
  return {
    ...track,
    id,
    codecId,
    mediaType: 1,
    timebaseDen: 1000,
    ...(config && { decoderConfig: config.toString('base64') }),
  };
}

export function describing(...tracks: ReturnType<typeof pictureOf>[]) {
  return descriptionOf({ tracks });
}
