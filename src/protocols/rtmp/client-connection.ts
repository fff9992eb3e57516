import { amfObject, isAmfObject, type AmfObject, type AmfValue } from './amf-value.ts';
import { encodeAmf0 } from './amf0.ts';
import { ChunkReader } from './chunk-reader.ts';
import { ChunkStream, ChunkWriter } from './chunk-writer.ts';
import { decodeCommand, encodeCommand, type Command } from './command.ts';
import { RtmpError } from './error.ts';
import { ClientHandshake } from './handshake.ts';
import {
  decodeNumber,
  encodeNumber,
  encodeUserControl,
  MessageType,
  UserControl,
  type RtmpMessage,
} from './message.ts';
import { ReceiveWindow } from './receive-window.ts';

/** Address of a published stream. */
export interface Publication {
  readonly tcUrl: string;
  readonly app: string;
  /** The stream's name at the server, mostly a secret key. */
  readonly name: string;
  /** FourCCs of Enhanced RTMP that may be sent. */
  readonly fourCcs: { readonly video: readonly string[]; readonly audio: readonly string[] };
}

/** Events of a publishing connection. */
export interface ClientConnectionEvents {
  /** The server accepts the stream: media can be sent. */
  published(): void;
  /** The server rejected `connect` with this description; `ended` follows. */
  refused(description: string): void;
  /**
   * The server asks for another connection, and takes media until that is made (Enhanced RTMP v2, "Reconnect Request").
   * @param tcUrl a reference relative to this connection's; undefined for the same one
   */
  reconnect(tcUrl: string | undefined): void;
  /** The server rejected the stream, or has ended it. */
  ended(reason: string): void;
}

/** Small, as the messages of a server are. */
const LIMITS = { messageBytes: 64 * 1024, partialBytes: 256 * 1024, chunkStreams: 64 };
const CHUNK_SIZE = 4096;
const FLASH_VERSION = 'FMLE/3.0 (compatible; Kiln)';
/** Enhanced RTMP v2: bits of a codec's entry by which a server takes what is published in it. */
const CAN_DECODE = 0b001;
const CAN_ENCODE = 0b010;
const CAN_FORWARD = 0b100;
const ANY = '*';
/** Enhanced RTMP v2, `capsEx`: the server may ask for another connection. */
const CAN_RECONNECT = 0b0001;
const RECONNECT_REQUEST = 'NetConnection.Connect.ReconnectRequest';

/** A publisher's side of RTMP: bytes in, messages out. Knows no socket. */
export class ClientConnection {
  readonly #publication: Publication;
  readonly #write: (pieces: readonly Buffer[]) => void;
  readonly #events: ClientConnectionEvents;
  readonly #handshake = new ClientHandshake();
  readonly #reader = new ChunkReader(LIMITS, (message) => this.#message(message));
  readonly #writer = new ChunkWriter();
  readonly #window = new ReceiveWindow();
  /** Names of unanswered commands, by transaction. */
  readonly #asked = new Map<number, string>();
  readonly #fourCcs = new Set<string>();
  #transaction = 0;
  #streamId = 0;
  #isPublished = false;

  constructor(publication: Publication, write: (pieces: readonly Buffer[]) => void, events: ClientConnectionEvents) {
    this.#publication = publication;
    this.#write = write;
    this.#events = events;
  }

  /** Starts the handshake; the server's answers drive everything after it. */
  open(): void {
    this.#write([this.#handshake.first()]);
  }

  /** @throws RtmpError when the server breaks the protocol; the connection is then of no more use */
  receive(data: Buffer): void {
    this.#window.add(data.length);
    let rest = data;
    if (!this.#handshake.done) {
      const { taken, answer } = this.#handshake.push(data);
      if (answer !== undefined) this.#write([answer]);
      rest = data.subarray(taken);
      if (this.#handshake.done) this.#connect();
    }
    if (rest.length > 0) this.#reader.push(rest);
    const received = this.#window.acknowledge();
    if (received !== undefined) this.#control(MessageType.Acknowledgement, encodeNumber(received));
  }

  /** Whether the server announced a codec in the form of Enhanced RTMP. */
  takes(fourCc: string): boolean {
    return this.#fourCcs.has(fourCc);
  }

  metadata(properties: AmfObject): void {
    const body = encodeAmf0('@setDataFrame', 'onMetaData', properties);
    this.#write(this.#writer.message(ChunkStream.Audio, MessageType.DataAmf0, this.#streamId, 0, body));
  }

  /** Sends a data message. @param body name and values in AMF0 */
  data(timestamp: number, body: Buffer): void {
    this.#write(this.#writer.message(ChunkStream.Audio, MessageType.DataAmf0, this.#streamId, timestamp, body));
  }

  /** Sends the body of an audio tag, in pieces. @param timestamp milliseconds */
  audio(timestamp: number, ...body: Buffer[]): void {
    this.#write(this.#writer.message(ChunkStream.Audio, MessageType.Audio, this.#streamId, timestamp, ...body));
  }

  /** Sends the body of a video tag, in pieces. @param timestamp milliseconds */
  video(timestamp: number, ...body: Buffer[]): void {
    this.#write(this.#writer.message(ChunkStream.Video, MessageType.Video, this.#streamId, timestamp, ...body));
  }

  /** Announces the end of the stream to the server. */
  unpublish(): void {
    if (!this.#isPublished) return;
    this.#isPublished = false;
    this.#send('FCUnpublish', null, this.#publication.name);
    this.#send('deleteStream', null, this.#streamId);
  }

  #connect(): void {
    const { tcUrl, app, fourCcs } = this.#publication;
    this.#write(this.#writer.setChunkSize(CHUNK_SIZE));
    this.#ask('connect', {
      app,
      type: 'nonprivate',
      flashVer: FLASH_VERSION,
      swfUrl: tcUrl,
      tcUrl,
      fourCcList: [...fourCcs.video, ...fourCcs.audio],
      videoFourCcInfoMap: encoded(fourCcs.video),
      audioFourCcInfoMap: encoded(fourCcs.audio),
      capsEx: CAN_RECONNECT,
    });
  }

  #message(message: RtmpMessage): void {
    const { type, payload } = message;
    if (type === MessageType.CommandAmf0 || type === MessageType.CommandAmf3) this.#command(decodeCommand(message));
    else if (type === MessageType.WindowAckSize) this.#window.resize(decodeNumber(message));
    else if (type === MessageType.UserControl) this.#userControl(payload);
  }

  #command(command: Command): void {
    const { name, transactionId } = command;
    if (name === 'onStatus') return this.#status(command);
    if (name === 'close') return this.#events.ended('the server closed the connection');
    const asked = this.#asked.get(transactionId);
    if (asked === undefined || (name !== '_result' && name !== '_error')) return;
    this.#asked.delete(transactionId);
    if (name === '_result') return this.#answered(asked, command);
    // many servers know neither
    if (asked === 'releaseStream' || asked === 'FCPublish') return;
    const { description } = infoOf(command);
    if (asked === 'connect' && typeof description === 'string') this.#events.refused(description);
    this.#events.ended(`the server refused ${asked}: ${reasonOf(command)}`);
  }

  #answered(asked: string, { object, args }: Command): void {
    const { name } = this.#publication;
    if (asked === 'connect') {
      for (const properties of [object, ...args]) if (isAmfObject(properties)) this.#readCapabilities(properties);
      this.#ask('releaseStream', null, name);
      this.#ask('FCPublish', null, name);
      this.#ask('createStream', null);
    } else if (asked === 'createStream') {
      const [id] = args;
      if (typeof id !== 'number') throw new RtmpError('the answer to createStream has no stream id');
      this.#streamId = id;
      this.#ask('publish', null, name, 'live');
    }
  }

  #status(command: Command): void {
    const info = infoOf(command);
    if (info.code === 'NetStream.Publish.Start' && !this.#isPublished) {
      this.#isPublished = true;
      this.#events.published();
    } else if (info.code === RECONNECT_REQUEST && info.level === 'status') {
      if (this.#isPublished) this.#events.reconnect(typeof info.tcUrl === 'string' ? info.tcUrl : undefined);
    } else if (info.level === 'error' || info.code === 'NetStream.Unpublish.Success') {
      this.#events.ended(`the server ended the stream: ${reasonOf(command)}`);
    }
  }

  /** Reads the FourCCs of Enhanced RTMP: a list, and from version 2 on maps of what each can be used for. */
  #readCapabilities({ fourCcList, videoFourCcInfoMap, audioFourCcInfoMap }: AmfObject): void {
    const { video, audio } = this.#publication.fourCcs;
    if (Array.isArray(fourCcList)) this.#take(fourCcList, [...video, ...audio]);
    this.#take(usable(videoFourCcInfoMap), video);
    this.#take(usable(audioFourCcInfoMap), audio);
  }

  #take(listed: readonly AmfValue[], ours: readonly string[]): void {
    for (const fourCc of ours) if (listed.includes(fourCc) || listed.includes(ANY)) this.#fourCcs.add(fourCc);
  }

  #userControl(payload: Buffer): void {
    if (payload.length < 6 || payload.readUInt16BE(0) !== UserControl.PingRequest) return;
    this.#control(MessageType.UserControl, encodeUserControl(UserControl.PingResponse, payload.readUInt32BE(2)));
  }

  #control(type: number, body: Buffer): void {
    this.#write(this.#writer.message(ChunkStream.Control, type, 0, 0, body));
  }

  #ask(name: string, ...rest: AmfValue[]): void {
    this.#asked.set(this.#send(name, ...rest), name);
  }

  #send(name: string, ...rest: AmfValue[]): number {
    const transaction = ++this.#transaction;
    const streamId = name === 'publish' ? this.#streamId : 0;
    const body = encodeCommand(name, transaction, ...rest);
    this.#write(this.#writer.message(ChunkStream.Command, MessageType.CommandAmf0, streamId, 0, body));
    return transaction;
  }
}

function encoded(fourCcs: readonly string[]): AmfObject {
  return Object.fromEntries(fourCcs.map((fourCc) => [fourCc, CAN_ENCODE]));
}

/** FourCCs of a map that the server accepts from publishers. */
function usable(map: AmfValue | undefined): string[] {
  if (!isAmfObject(map)) return [];
  return Object.entries(map).flatMap(([fourCc, uses]) =>
    typeof uses === 'number' && (uses & (CAN_DECODE | CAN_FORWARD)) !== 0 ? fourCc : [],
  );
}

function infoOf({ args }: Command): AmfObject {
  return args.find((value): value is AmfObject => isAmfObject(value)) ?? amfObject();
}

function reasonOf(command: Command): string {
  const { code, description } = infoOf(command);
  const texts = [description, code].filter((text): text is string => typeof text === 'string' && text !== '');
  return texts.length === 0 ? 'it gives no reason' : `"${texts.join(', ')}"`;
}
