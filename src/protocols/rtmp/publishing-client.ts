import { isAmfObject, type AmfObject, type AmfValue } from './amf-value.ts';
import { encodeAmf0 } from './amf0.ts';
import { ChunkStream } from './chunk-writer.ts';
import type { Command } from './command.ts';
import { CommandClient, infoOf, reasonOf } from './command-client.ts';
import { RtmpError } from './error.ts';
import { MessageType } from './message.ts';

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
export interface PublishingClientEvents {
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
const FLASH_VERSION = 'FMLE/3.0 (compatible; Kiln)';
/** Enhanced RTMP v2: bits of a codec's entry by which a server takes what is published in it. */
const CAN_DECODE = 0b001;
const CAN_ENCODE = 0b010;
const CAN_FORWARD = 0b100;
const ANY = '*';
/** Enhanced RTMP v2, `capsEx`: the server may ask for another connection. */
const CAN_RECONNECT = 0b0001;
const RECONNECT_REQUEST = 'NetConnection.Connect.ReconnectRequest';
/** Commands that many servers do not know. */
const OPTIONAL: ReadonlySet<string> = new Set(['releaseStream', 'FCPublish']);

/** A publisher's side of RTMP: bytes in, messages out. Knows no socket. */
export class PublishingClient {
  readonly #publication: Publication;
  readonly #events: PublishingClientEvents;
  readonly #client: CommandClient;
  readonly #fourCcs = new Set<string>();
  #streamId = 0;
  #isPublished = false;

  constructor(publication: Publication, write: (pieces: readonly Buffer[]) => void, events: PublishingClientEvents) {
    this.#publication = publication;
    this.#events = events;
    this.#client = new CommandClient(propertiesOf(publication), LIMITS, write, {
      connected: (properties) => this.#connected(properties),
      answered: (name, answer) => this.#answered(name, answer),
      rejected: (name, answer) => this.#rejected(name, answer),
      status: (info) => this.#status(info),
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

  /** Whether the server announced a codec in the form of Enhanced RTMP. */
  takes(fourCc: string): boolean {
    return this.#fourCcs.has(fourCc);
  }

  metadata(properties: AmfObject): void {
    this.data(0, encodeAmf0('@setDataFrame', 'onMetaData', properties));
  }

  /** Sends a data message. @param body name and values in AMF0 */
  data(timestamp: number, body: Buffer): void {
    this.#client.send(ChunkStream.Audio, MessageType.DataAmf0, this.#streamId, timestamp, body);
  }

  /** Sends the body of an audio tag, in pieces. @param timestamp milliseconds */
  audio(timestamp: number, ...body: Buffer[]): void {
    this.#client.send(ChunkStream.Audio, MessageType.Audio, this.#streamId, timestamp, ...body);
  }

  /** Sends the body of a video tag, in pieces. @param timestamp milliseconds */
  video(timestamp: number, ...body: Buffer[]): void {
    this.#client.send(ChunkStream.Video, MessageType.Video, this.#streamId, timestamp, ...body);
  }

  /** Announces the end of the stream to the server. */
  unpublish(): void {
    if (!this.#isPublished) return;
    this.#isPublished = false;
    this.#client.command(0, 'FCUnpublish', null, this.#publication.name);
    this.#client.command(0, 'deleteStream', null, this.#streamId);
  }

  /** Reads the FourCCs of Enhanced RTMP: a list, and from version 2 on maps of what each can be used for. */
  #connected(properties: readonly AmfObject[]): void {
    const { name, fourCcs } = this.#publication;
    for (const { fourCcList, videoFourCcInfoMap, audioFourCcInfoMap } of properties) {
      if (Array.isArray(fourCcList)) this.#take(fourCcList, [...fourCcs.video, ...fourCcs.audio]);
      this.#take(usable(videoFourCcInfoMap), fourCcs.video);
      this.#take(usable(audioFourCcInfoMap), fourCcs.audio);
    }
    this.#client.ask(0, 'releaseStream', null, name);
    this.#client.ask(0, 'FCPublish', null, name);
    this.#client.ask(0, 'createStream', null);
  }

  #answered(name: string, { args: [id] }: Command): void {
    if (name !== 'createStream') return;
    if (typeof id !== 'number') throw new RtmpError('the answer to createStream has no stream id');
    this.#streamId = id;
    this.#client.ask(id, 'publish', null, this.#publication.name, 'live');
  }

  #rejected(name: string, answer: Command): void {
    if (OPTIONAL.has(name)) return;
    const info = infoOf(answer);
    if (name === 'connect' && typeof info.description === 'string') this.#events.refused(info.description);
    this.#events.ended(`the server refused ${name}: ${reasonOf(info)}`);
  }

  #status(info: AmfObject): void {
    if (info.code === 'NetStream.Publish.Start' && !this.#isPublished) {
      this.#isPublished = true;
      this.#events.published();
    } else if (info.code === RECONNECT_REQUEST && info.level === 'status') {
      if (this.#isPublished) this.#events.reconnect(typeof info.tcUrl === 'string' ? info.tcUrl : undefined);
    } else if (info.level === 'error' || info.code === 'NetStream.Unpublish.Success') {
      this.#events.ended(`the server ended the stream: ${reasonOf(info)}`);
    }
  }

  #take(listed: readonly AmfValue[], ours: readonly string[]): void {
    for (const fourCc of ours) if (listed.includes(fourCc) || listed.includes(ANY)) this.#fourCcs.add(fourCc);
  }
}

/** Properties of `connect`. */
function propertiesOf({ tcUrl, app, fourCcs }: Publication): AmfObject {
  return {
    app,
    type: 'nonprivate',
    flashVer: FLASH_VERSION,
    swfUrl: tcUrl,
    tcUrl,
    fourCcList: [...fourCcs.video, ...fourCcs.audio],
    videoFourCcInfoMap: encoded(fourCcs.video),
    audioFourCcInfoMap: encoded(fourCcs.audio),
    capsEx: CAN_RECONNECT,
  };
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
