import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { isAmfObject, type AmfObject, type AmfValue } from '../../../src/protocols/rtmp/amf-value.ts';
import { encodeAmf0 } from '../../../src/protocols/rtmp/amf0.ts';
import { ChunkReader } from '../../../src/protocols/rtmp/chunk-reader.ts';
import { ChunkStream, ChunkWriter } from '../../../src/protocols/rtmp/chunk-writer.ts';
import { decodeCommand, encodeCommand, type Command } from '../../../src/protocols/rtmp/command.ts';
import { HANDSHAKE_BYTES, signFirst, type DigestScheme } from '../../../src/protocols/rtmp/handshake.ts';
import { MessageType, type RtmpMessage } from '../../../src/protocols/rtmp/message.ts';
import { PATIENCE_MS, until } from '../time/until.ts';

export interface RtmpClientOptions {
  readonly port: number;
  /** Of this machine, to come from. */
  readonly localAddress?: string;
  /** What is connected to; loopback unless given. */
  readonly address?: string | undefined;
  /** Host that the URL names, whatever is connected to. */
  readonly host?: string;
  readonly app?: string;
  readonly tcUrl?: string;
  /** What encoders add to the connect object. */
  readonly properties?: AmfObject;
  readonly chunkSize?: number;
  /** Sign the handshake as Flash does; simple without it. */
  readonly digest?: DigestScheme;
  /** Speaks TLS, and asks for the certificate of this name; takes any. */
  readonly servername?: string;
  /** What it sends in front of everything, as a proxy does. */
  readonly preface?: string;
}

/** What OBS Studio 30 says of itself on `connect`. */
export const OBS_PROPERTIES: AmfObject = {
  type: 'nonprivate',
  flashVer: 'FMLE/3.0 (compatible; FMSc/1.0)',
  fourCcList: ['av01', 'hvc1', 'avc1'],
  videoFunction: 1,
  capsEx: 0,
};

/** An RTMP publisher for tests: speaks like OBS and sends the tags it is given. */
export class RtmpClient {
  readonly socket: Socket;
  /** Every command and status that came. */
  readonly heard: Command[] = [];
  /** Every other message that came. */
  readonly messages: RtmpMessage[] = [];
  streamId = 0;
  readonly #writer = new ChunkWriter();
  readonly #reader: ChunkReader;
  #toShake = 1 + 2 * HANDSHAKE_BYTES;
  #transaction = 0;
  #ended = false;
  /** What waits for messages, or for the end of the connection. */
  readonly #waiting = new Set<() => void>();
  readonly serverHandshake: Buffer[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    this.#reader = new ChunkReader({ messageBytes: 1 << 20, partialBytes: 1 << 20, chunkStreams: 64 }, (message) =>
      this.#message(message),
    );
    socket.setNoDelay(true);
    socket.on('data', (data) => this.#receive(data));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#ended = true;
      this.#wake();
    });
  }

  /** Connects and shakes hands, no more. */
  static async open({
    port,
    address = '127.0.0.1',
    localAddress,
    digest,
    servername,
    preface,
  }: Omit<RtmpClientOptions, 'app'>): Promise<RtmpClient> {
    const plain = connect({ port, host: address, localAddress });
    await once(plain, 'connect');
    if (preface !== undefined) plain.write(preface);
    const socket =
      servername === undefined ? plain : connectTls({ socket: plain, servername, rejectUnauthorized: false });
    if (socket !== plain) await once(socket, 'secureConnect');
    const client = new RtmpClient(socket);
    const c1 = Buffer.alloc(HANDSHAKE_BYTES);
    randomFillSync(c1, 8);
    if (digest !== undefined) {
      c1.writeUInt32BE(0x80000702, 4);
      signFirst(c1, 'player', digest);
    }
    socket.write(Buffer.concat([Buffer.of(3), c1]));
    await client.until('handshake', () => client.#toShake === 0);
    socket.write(Buffer.concat(client.serverHandshake).subarray(1, 1 + HANDSHAKE_BYTES));
    return client;
  }

  /** Shakes hands and connects to the application. @throws when the server refuses */
  static async connect(options: RtmpClientOptions): Promise<RtmpClient> {
    const { port, host = '127.0.0.1', app = 'app', properties = OBS_PROPERTIES, chunkSize = 4096 } = options;
    const client = await RtmpClient.open(options);
    client.send(client.#writer.setChunkSize(chunkSize));
    const tcUrl = options.tcUrl ?? `rtmp://${host}:${port}/${app}`;
    await client.call('connect', { app, tcUrl, swfUrl: tcUrl, ...properties });
    return client;
  }

  /** Connects and publishes the way OBS does. @throws when the server refuses */
  static async publish(key: string, options: RtmpClientOptions): Promise<RtmpClient> {
    const client = await RtmpClient.connect(options);
    await client.publish(key);
    return client;
  }

  async publish(key: string): Promise<void> {
    this.command('releaseStream', ++this.#transaction, null, key);
    this.command('FCPublish', ++this.#transaction, null, key);
    const { args } = await this.call('createStream', null);
    this.streamId = args[0] as number;
    this.command('publish', ++this.#transaction, null, key, 'live');
    const before = this.statuses().length;
    await this.until('answer to publish', () => this.statuses().length > before);
    // not the last one: the end of the stream may be behind it
    const status = this.statuses()[before];
    if (status?.code !== 'NetStream.Publish.Start') throw new Error(`${status?.code}: ${status?.description}`);
  }

  /** Asks to play a stream. @returns the codes of the statuses that came up to the one that decides */
  async play(name: string): Promise<string[]> {
    const { args } = await this.call('createStream', null);
    this.streamId = args[0] as number;
    const before = this.statuses().length;
    this.command('play', 0, null, name, -2000);
    const codes = () =>
      this.statuses()
        .slice(before)
        .map(({ code }) => String(code));
    await this.until('answer to play', () => codes().some((code) => code !== 'NetStream.Play.Reset'));
    return codes();
  }

  /** Messages of a type that came. */
  of(type: number): RtmpMessage[] {
    return this.messages.filter((message) => message.type === type);
  }

  /** Sends a command and awaits its answer. @throws when it is `_error` */
  async call(name: string, ...rest: AmfValue[]): Promise<Command> {
    const transaction = ++this.#transaction;
    this.command(name, transaction, ...rest);
    const answer = () =>
      this.heard.find((command) => command.transactionId === transaction && /^_(result|error)$/.test(command.name));
    await this.until(`answer to ${name}`, () => answer() !== undefined);
    const found = answer() as Command;
    if (found.name === '_error') {
      const info = found.args.find((value) => isAmfObject(value)) as AmfObject | undefined;
      throw new Error(`${info?.code}: ${info?.description}`);
    }
    return found;
  }

  command(name: string, transaction: number, ...rest: AmfValue[]): void {
    const body = encodeCommand(name, transaction, ...rest);
    this.message(ChunkStream.Command, MessageType.CommandAmf0, 0, body);
  }

  metadata(properties: AmfObject): void {
    const body = encodeAmf0('@setDataFrame', 'onMetaData', properties);
    this.message(ChunkStream.Audio, MessageType.DataAmf0, 0, body);
  }

  video(body: Buffer, timestamp: number): void {
    this.message(ChunkStream.Video, MessageType.Video, timestamp, body);
  }

  audio(body: Buffer, timestamp: number): void {
    this.message(ChunkStream.Audio, MessageType.Audio, timestamp, body);
  }

  message(chunkStream: number, type: number, timestamp: number, body: Buffer): void {
    this.send(this.#writer.message(chunkStream, type, this.streamId, timestamp, body));
  }

  send(pieces: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(pieces));
  }

  /** The information objects of all `onStatus` so far. */
  statuses(): AmfObject[] {
    return this.heard.filter(({ name }) => name === 'onStatus').map(({ args }) => args[0] as AmfObject);
  }

  /** Waits for a state that messages bring about. @throws when the connection ends first, or after a long time */
  async until(what: string, reached: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = (): void => {
      if (reached()) resolve();
      else if (this.#ended) reject(new Error(`connection ended before: ${what}`));
    };
    const late = setTimeout(() => reject(new Error(`not in time: ${what}`)), PATIENCE_MS);
    this.#waiting.add(look);
    try {
      look();
      await promise;
    } finally {
      clearTimeout(late);
      this.#waiting.delete(look);
    }
  }

  async ended(): Promise<void> {
    await until('the connection has ended', () => this.socket.closed);
  }

  close(): void {
    this.socket.destroy();
  }

  #receive(data: Buffer): void {
    const taken = Math.min(this.#toShake, data.length);
    if (taken > 0) this.serverHandshake.push(data.subarray(0, taken));
    this.#toShake -= taken;
    if (taken < data.length) this.#reader.push(data.subarray(taken));
    this.#wake();
  }

  #wake(): void {
    for (const look of this.#waiting) look();
  }

  #message(message: RtmpMessage): void {
    if (message.type === MessageType.CommandAmf0) this.heard.push(decodeCommand(message));
    else this.messages.push(message);
  }
}
