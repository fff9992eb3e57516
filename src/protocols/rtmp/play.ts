import type { Logger } from '../../log/log.ts';
import type { AmfObject } from './amf-value.ts';
import { ChunkStream, ChunkWriter } from './chunk-writer.ts';
import { MessageType } from './message.ts';
import { OUT_CHUNK_SIZE } from './server-connection.ts';

/** Codecs and forms that a player announces in its `connect` (Enhanced RTMP v2). */
export interface PlayerAbility {
  /** FourCCs that it takes beside the classic codecs. */
  readonly fourCcs: ReadonlySet<string>;
  /** Takes several tracks of a kind. */
  readonly multitrack: boolean;
  /** The player could not say so: of several tracks it is sent one that all players take. */
  readonly isAssumed?: boolean;
}

/** Connection of a client to the stream that it plays. */
export interface PlayLink {
  readonly log: Logger;
  readonly ability: PlayerAbility;
  /** Bytes that wait to be sent. */
  readonly unsent: number;
  /** Whether too much waits: `Play.writable` is called when all is sent. */
  readonly isFull: boolean;
  status(info: AmfObject): void;
  streamBegin(): void;
  streamEof(): void;
  /** Sends a message of `playMessage`. */
  send(message: Buffer): void;
  /** The client is served. */
  playing(): void;
  /** The play has ended by itself: the connection is closed when what was sent is out. @param level of the reason in the log */
  ended(reason: string, level: 'debug' | 'info' | 'warn'): void;
}

/** A stream that a client plays, from its command `play` on. */
export interface Play {
  pause(isPaused: boolean): void;
  /** Whether the client wants a kind of media: `receiveAudio`, `receiveVideo`. */
  receive(kind: 'audio' | 'video', isWanted: boolean): void;
  /** All that was sent is out. */
  writable(): void;
  /** The client has left. Idempotent. */
  close(reason: string): void;
}

const STREAM = 1;
/** Position of the message stream's id in a message with a full header. */
const STREAM_AT = 8;

const writer = new ChunkWriter();
writer.setChunkSize(OUT_CHUNK_SIZE);

/**
 * One message of audio, video or data in chunks, the same for all players of a stream: any of them may get it next.
 * @param type as FLV tags and RTMP messages have it
 * @param time milliseconds
 * @param body in pieces
 */
export function playMessage(type: number, time: number, body: readonly Buffer[]): Buffer {
  const chunkStream = type === MessageType.Video ? ChunkStream.Video : ChunkStream.Audio;
  return Buffer.concat(writer.message(chunkStream, type, STREAM, time, ...body));
}

/** The pieces of a message of `playMessage` for a client whose message stream may have another id. */
export function onMessageStream(message: Buffer, streamId: number): Buffer[] {
  if (streamId === STREAM) return [message];
  const head = Buffer.from(message.subarray(0, STREAM_AT + 4));
  head.writeUInt32LE(streamId, STREAM_AT);
  return [head, message.subarray(STREAM_AT + 4)];
}
