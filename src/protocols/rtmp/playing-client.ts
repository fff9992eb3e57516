import type { AmfObject } from './amf-value.ts';
import type { ChunkLimits } from './chunk-reader.ts';
import { ChunkStream } from './chunk-writer.ts';
import { deliverData, type Command, type DataEvents } from './command.ts';
import { CommandClient, infoOf, reasonOf } from './command-client.ts';
import { RtmpError } from './error.ts';
import { encodeBufferLength, MessageType, splitAggregate, type RtmpMessage } from './message.ts';

/** Address of a stream that a server has. */
export interface PlayTarget {
  readonly tcUrl: string;
  readonly app: string;
  readonly name: string;
  /** FourCCs of Enhanced RTMP that can be received. */
  readonly fourCcs: { readonly video: readonly string[]; readonly audio: readonly string[] };
}

/** Events of a playing connection. */
export interface PlayingClientEvents extends DataEvents {
  /** The server has the stream: its media follow. */
  playing(): void;
  /** The server rejected `connect` with this description; `ended` follows. */
  refused(description: string): void;
  audio(payload: Buffer, timestamp: number): void;
  video(payload: Buffer, timestamp: number): void;
  /** The server does not have the stream, or has ended it. */
  ended(reason: string): void;
}

const LIMITS: ChunkLimits = { messageBytes: 8 * 1024 * 1024, partialBytes: 16 * 1024 * 1024, chunkStreams: 64 };
const FLASH_VERSION = 'LNX 9,0,124,2';
/** Properties that players declare: every codec of the former tags, and seeking (RTMP specification section 7.2.1.1). */
const [CAPABILITIES, AUDIO_CODECS, VIDEO_CODECS, CLIENT_SEEK] = [15, 0x0fff, 0x00ff, 1];
/** Enhanced RTMP v2: the codec can be decoded; several tracks, modifiers and nanosecond offsets are understood. */
const CAN_DECODE = 0b001;
const CAPS_EX = 0b1110;
/** Milliseconds of the player's buffer, by which servers decide how far ahead they send. */
const BUFFER_MS = 3000;
const ENDS: ReadonlySet<unknown> = new Set(['NetStream.Play.UnpublishNotify', 'NetStream.Play.Stop']);

/** A player's side of RTMP: bytes in, media out. Knows no socket. */
export class PlayingClient {
  readonly #target: PlayTarget;
  readonly #events: PlayingClientEvents;
  readonly #client: CommandClient;
  #plays = false;

  constructor(target: PlayTarget, write: (pieces: readonly Buffer[]) => void, events: PlayingClientEvents) {
    this.#target = target;
    this.#events = events;
    this.#client = new CommandClient(propertiesOf(target), LIMITS, write, {
      connected: () => this.#client.ask(0, 'createStream', null),
      answered: (name, answer) => this.#answered(name, answer),
      rejected: (name, answer) => this.#rejected(name, answer),
      status: (info) => this.#status(info),
      media: (message) => this.#media(message),
      streamEnded: () => events.ended('the server ended the stream'),
      ended: (reason) => events.ended(reason),
    });
  }

  /** Starts the handshake; the server's answers drive everything after it. */
  open(): void {
    this.#client.open();
  }

  /** @throws RtmpError when the server breaks the protocol; the connection is then of no more use */
  receive(data: Buffer): void {
    this.#client.receive(data);
  }

  #answered(name: string, { args: [id] }: Command): void {
    if (name !== 'createStream') return;
    if (typeof id !== 'number') throw new RtmpError('the answer to createStream has no stream id');
    this.#client.ask(id, 'play', null, this.#target.name);
    const length = encodeBufferLength(id, BUFFER_MS);
    this.#client.send(ChunkStream.Control, MessageType.UserControl, 0, 0, length);
  }

  #rejected(name: string, answer: Command): void {
    const info = infoOf(answer);
    if (name === 'connect' && typeof info.description === 'string') this.#events.refused(info.description);
    this.#events.ended(`the server refused ${name}: ${reasonOf(info)}`);
  }

  #status(info: AmfObject): void {
    if (info.level === 'error' || ENDS.has(info.code))
      this.#events.ended(`the server ended the stream: ${reasonOf(info)}`);
    else if (info.code === 'NetStream.Play.Start') this.#begin();
  }

  #begin(): void {
    if (this.#plays) return;
    this.#plays = true;
    this.#events.playing();
  }

  #media(message: RtmpMessage): void {
    const { type, payload, timestamp } = message;
    switch (type) {
      case MessageType.Video:
        this.#begin();
        return this.#events.video(payload, timestamp);
      case MessageType.Audio:
        this.#begin();
        return this.#events.audio(payload, timestamp);
      case MessageType.Aggregate:
        for (const part of splitAggregate(message)) this.#media(part);
        return;
      case MessageType.DataAmf0:
      case MessageType.DataAmf3:
        return deliverData(message, this.#events);
      default:
      // acknowledgements, bandwidths and shared objects ask for nothing here
    }
  }
}

/** Properties of `connect`. */
function propertiesOf({ tcUrl, app, fourCcs }: PlayTarget): AmfObject {
  return {
    app,
    flashVer: FLASH_VERSION,
    tcUrl,
    fpad: false,
    capabilities: CAPABILITIES,
    audioCodecs: AUDIO_CODECS,
    videoCodecs: VIDEO_CODECS,
    videoFunction: CLIENT_SEEK,
    fourCcList: [...fourCcs.video, ...fourCcs.audio],
    videoFourCcInfoMap: decoded(fourCcs.video),
    audioFourCcInfoMap: decoded(fourCcs.audio),
    capsEx: CAPS_EX,
  };
}

function decoded(fourCcs: readonly string[]): AmfObject {
  return Object.fromEntries(fourCcs.map((fourCc) => [fourCc, CAN_DECODE]));
}
