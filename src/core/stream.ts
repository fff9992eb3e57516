import { EventEmitter } from 'node:events';
import { ArrivalClock } from './arrival-clock.ts';
import { Continuity } from './continuity.ts';
import { Counters } from './counters.ts';
import { EventTracks } from './event-tracks.ts';
import { KickedSessions } from './kicked-sessions.ts';
import { TrackMeter, type Measured } from './meter.ts';
import type { Packet } from './packet.ts';
import type { Playlist } from './playlist.ts';
import { Queue, type QueueKind, type QueueThreshold } from './queue.ts';
import { Reader, type Consumer, type ReaderLimits } from './reader.ts';
import { SeiInsertion, type UserData } from './sei-insertion.ts';
import type { Session } from './session.ts';
import type { Source } from './source.ts';
import { VIDEO_TIMEBASE, type Timebase } from './timebase.ts';
import type { DataCodec, DataTrack, Track } from './track.ts';

interface StreamEvents {
  /** The set of tracks, or the configuration of one, is another. */
  tracks: [tracks: readonly Track[]];
  close: [reason: string];
  /** Output streams: a viewer or a relay came or left. */
  viewers: [count: number];
  /** Output streams: a viewer came or left. */
  joined: [session: Session];
  left: [session: Session];
  /** Input streams: a reader needs a key frame to start or to go on. */
  keyWanted: [];
  /** Input streams: `handsOver` has changed. */
  handsOver: [];
  /** Input streams: the source does something wrong, for an alert. */
  trouble: [code: string, description: string];
  /** Output streams that rest: a viewer is about to come. */
  wanted: [];
  /** A reader's consumer threw: it is detached, writer and other readers go on. */
  fault: [error: unknown];
}

/**
 * Packets from one writer to many readers. Knows no protocol.
 * The first `setTracks` makes it live; `close` ends every reader.
 */
export class Stream extends EventEmitter<StreamEvents> {
  readonly name: string;
  readonly createdTime = new Date();
  readonly counters: Counters;
  #tracks: readonly Track[] = [];
  readonly #meters = new Map<number, TrackMeter>();
  /** Replaced, never changed: a reader that comes during a write begins with the next packet. */
  #readers: readonly Reader[] = [];
  readonly #queues = new Map<QueueKind, Queue>();
  #closed = false;

  constructor(name: string, counters: Counters) {
    super();
    this.setMaxListeners(0);
    this.name = name;
    this.counters = counters;
  }

  get tracks(): readonly Track[] {
    return this.#tracks;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get readers(): number {
    return this.#readers.length;
  }

  /** Queues of readers that may fall behind. */
  get queues(): Iterable<Queue> {
    return this.#queues.values();
  }

  /** Counts what waits for the readers of a kind, for as long as the stream lives. */
  queue(kind: QueueKind, threshold: QueueThreshold): Queue {
    const queue = this.#queues.get(kind) ?? new Queue(kind, threshold);
    this.#queues.set(kind, queue);
    return queue;
  }

  /** Runtime measurement of a track; undefined for an unknown id. */
  measured(trackId: number): Measured | undefined {
    return this.#meters.get(trackId)?.read();
  }

  /**
   * Sets or replaces the tracks. Another track object under a known id counts as a change of its configuration
   * when its format is another.
   */
  setTracks(tracks: readonly Track[]): void {
    if (this.#closed) return;
    for (const track of tracks) {
      const known = this.#tracks.find(({ id }) => id === track.id);
      if (known === undefined) this.#meters.set(track.id, new TrackMeter(track));
      else if (known !== track) this.#meters.get(track.id)?.replaced(track);
    }
    for (const { id } of this.#tracks) {
      if (!tracks.some((track) => track.id === id)) this.#meters.delete(id);
    }
    this.#tracks = Object.freeze([...tracks]);
    if (!tracks.some(({ type }) => type === 'video')) for (const reader of this.#readers) reader.videoGone();
    this.emit('tracks', this.#tracks);
  }

  /** Hands a packet of one of the current tracks to every reader, in this turn. */
  write(packet: Packet): void {
    if (this.#closed) return;
    this.#meters.get(packet.track.id)?.add(packet);
    for (const reader of this.#readers) {
      try {
        reader.push(packet);
      } catch (error) {
        this.#end(reader, 'it failed on a packet');
        this.emit('fault', error);
      }
    }
  }

  /**
   * Attaches a consumer, from the next packet on. On a closed stream its `close` is called at once.
   * @param queue counts what waits for it; undefined for a consumer that takes every packet at once
   */
  read(consumer: Consumer, limits?: ReaderLimits, queue?: Queue): Reader {
    const reader = new Reader(consumer, (gone) => this.#detach(gone), limits, this.counters, queue);
    if (this.#closed) {
      reader.end('the stream has ended');
      return reader;
    }
    this.#readers = [...this.#readers, reader];
    this.wantKey();
    return reader;
  }

  /** A key frame is needed before the next one is due: a source that can be asked for one is. Every new reader needs one. */
  wantKey(): void {}

  /** Ends what hangs on the stream and every reader. Idempotent. */
  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.closeChildren(reason);
    for (const reader of this.#readers) this.#end(reader, reason);
    this.emit('close', reason);
    this.removeAllListeners();
  }

  /** Called once, when the stream counts as closed already. */
  protected closeChildren(_reason: string): void {}

  #end(reader: Reader, reason: string): void {
    try {
      reader.end(reason);
    } catch (error) {
      this.emit('fault', error);
    }
  }

  #detach(gone: Reader): void {
    this.#readers = this.#readers.filter((reader) => reader !== gone);
  }
}

export interface InputOptions {
  /** State from the stream before, and for the next one. */
  readonly continuity?: Continuity;
  /** Another node has the stream; viewers of this one get it through here. */
  readonly isRelay?: boolean;
  /** The provider makes its output stream, as the origin describes it, without output profiles. */
  readonly isPassthrough?: boolean;
  /** The management API lists it before its tracks are known. */
  readonly isListed?: boolean;
}

/** A stream that a provider writes into. The provider must disconnect on `close`, with which others end the stream. */
export class InputStream extends Stream {
  readonly source: Source;
  readonly continuity: Continuity;
  readonly arrival = new ArrivalClock();
  /** Viewers who stay out, of this stream and of the one that continues it. */
  readonly kicked: KickedSessions;
  readonly isRelay: boolean;
  readonly isPassthrough: boolean;
  /** Its output streams are made: no other is to come. Set through `Application.outputsMade`. */
  hasOutputs = false;
  readonly #isListed: boolean;
  #handsOver = false;
  readonly #events = new EventTracks();
  readonly #outputs = new Map<string, OutputStream>();

  constructor(name: string, source: Source, parent: Counters, options: InputOptions = {}) {
    const { continuity = new Continuity(), isRelay = false, isPassthrough = false, isListed = false } = options;
    super(name, new Counters(parent));
    this.source = source;
    this.continuity = continuity;
    this.kicked = new KickedSessions(continuity);
    this.isRelay = isRelay;
    this.isPassthrough = isPassthrough;
    this.#isListed = isListed;
  }

  /** The stream moves to another node: its publisher was asked to reconnect there, or its task has left. That node may take the name. */
  get handsOver(): boolean {
    return this.#handsOver;
  }

  set handsOver(handsOver: boolean) {
    if (handsOver === this.#handsOver) return;
    this.#handsOver = handsOver;
    this.emit('handsOver');
  }

  /** Whether the management API shows it. */
  get listed(): boolean {
    return this.#isListed || this.tracks.length > 0;
  }

  get outputs(): ReadonlyMap<string, OutputStream> {
    return this.#outputs;
  }

  /** Viewers of every output. */
  *sessions(): IterableIterator<Session> {
    for (const output of this.#outputs.values()) yield* output.sessions.values();
  }

  /** The viewer of an output under this id. */
  session(id: string): Session | undefined {
    for (const output of this.#outputs.values()) {
      const session = output.sessions.get(id);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  /** Makes an output stream; it ends with this stream. Called through `Application.addOutput`. */
  addOutput(name: string): OutputStream {
    const output = new OutputStream(name, this);
    this.#outputs.set(name, output);
    output.once('close', () => this.#outputs.delete(name));
    return output;
  }

  override setTracks(tracks: readonly Track[]): void {
    super.setTracks(this.#events.after(tracks));
  }

  /**
   * Writes an event at the time of the media that arrived last. The first of its kind adds a data track to the stream.
   * @param data in the codec's form; must not change afterwards
   * @param target the only tracks that it belongs beside; all of them where there is none
   * @returns false when there is no media yet, or none any more, that it could belong to
   */
  inject(codec: DataCodec, data: Buffer, target?: DataTrack['target']): boolean {
    const { newest } = this.arrival;
    if (this.closed || newest === undefined) return false;
    const { track, isNew } = this.#events.of(codec, target, this.tracks);
    if (isNew) this.setTracks(this.tracks);
    const pts = Math.round((newest * VIDEO_TIMEBASE.den) / VIDEO_TIMEBASE.num);
    this.write({ track, dts: pts, pts, duration: 0, key: true, data });
    return true;
  }

  /**
   * Puts user data into the H.264 and H.265 video of every output stream, into a frame of each track that is no older than
   * the media that arrived last. Where packets go past the output stream, from WebRTC to WebRTC, it is not there.
   * @returns false when there is no media yet, or none any more
   */
  insertUserData(userData: UserData): boolean {
    const { newest } = this.arrival;
    if (this.closed || newest === undefined) return false;
    for (const output of this.#outputs.values()) output.insertUserData(userData, newest);
    return true;
  }

  override write(packet: Packet): void {
    this.arrival.note(packet);
    super.write(packet);
  }

  override wantKey(): void {
    this.emit('keyWanted');
  }

  /** Ends it for good: nothing continues it, or, where the name was `taken`, something does already. */
  end(reason: string, how?: { readonly taken: boolean }): void {
    this.continuity.end(how);
    this.close(reason);
  }

  protected override closeChildren(reason: string): void {
    for (const output of [...this.#outputs.values()]) output.close(reason);
  }
}

/** One run of a stream of another node, from the time that it is published there until it ends. */
export interface RelayedRun {
  /** On all nodes the same. */
  readonly id: string;
  /** By how much, in ticks, its times are later here than at its owner. */
  shift(timebase: Timebase): number;
}

/** Use of an output stream on behalf of others. */
export interface OutputUse {
  /** All of them take only tracks that a playlist of the stream names; absent: any of them. */
  readonly byPlaylist?: boolean;
  /** Number of viewers among them, where that is known. */
  readonly viewers?: () => number;
}

/** A stream that publishers read. It shares the counters of its input: the API measures by input stream. */
export class OutputStream extends Stream {
  readonly input: InputStream;
  /** Publishers know of it. Set through `Application.announce`. */
  announced = false;
  /** The run that a relay relays, set by it together with the tracks. */
  run: RelayedRun | undefined;
  /** Set by a relay while nothing comes and it looks for another node that sends the stream. */
  interrupted = false;
  #playlists: readonly Playlist[] = [];
  #awaited: readonly Track[] = [];
  #resting = false;
  readonly #sessions = new Map<string, Session>();
  readonly #departures = new Set<() => void>();
  readonly #userData = new SeiInsertion();
  readonly #relays = new Set<OutputUse>();
  /** Number of sessions and relays that may take tracks which no playlist names. */
  #beside = 0;

  constructor(name: string, input: InputStream) {
    super(name, input.counters);
    this.input = input;
  }

  /** Tracks without packets: their encoders have put out nothing yet or failed, or they wait for such ones. */
  get awaited(): readonly Track[] {
    return this.#awaited;
  }

  setAwaited(tracks: readonly Track[]): void {
    this.#awaited = Object.freeze([...tracks]);
  }

  /** Its encoders put out nothing until there is a viewer, or `wanted` announces one. */
  get resting(): boolean {
    return this.#resting;
  }

  setResting(resting: boolean): void {
    this.#resting = resting;
  }

  get playlists(): readonly Playlist[] {
    return this.#playlists;
  }

  get sessions(): ReadonlyMap<string, Session> {
    return this.#sessions;
  }

  /** Whether it has viewers, here or behind a relay. */
  get watched(): boolean {
    return this.#sessions.size > 0 || this.#relays.size > 0;
  }

  /** Whether a viewer, here or behind a relay, may take tracks that no playlist names. */
  get takenBesidePlaylists(): boolean {
    return this.#beside > 0;
  }

  /** Number of viewers behind relays, which have no session here. */
  get viewersElsewhere(): number {
    let count = 0;
    for (const { viewers } of this.#relays) count += viewers?.() ?? 0;
    return count;
  }

  /** Counts a use beside its sessions, such as a relay on another node. @returns ends the use */
  addRelay(by: OutputUse = {}): () => void {
    const relay = { ...by };
    this.#relays.add(relay);
    if (!relay.byPlaylist) this.#beside++;
    this.emit('viewers', this.#sessions.size);
    return () => {
      if (!this.#relays.delete(relay)) return;
      if (!relay.byPlaylist) this.#beside--;
      this.emit('viewers', this.#sessions.size);
    };
  }

  override wantKey(): void {
    this.input.wantKey();
  }

  override write(packet: Packet): void {
    super.write(this.#userData.empty ? packet : this.#userData.apply(packet, this.tracks));
  }

  /** @param from media time, in seconds, of the first frame that takes it */
  insertUserData(userData: UserData, from: number): void {
    this.#userData.add(userData, from);
  }

  addPlaylist(playlist: Playlist): void {
    this.#playlists = Object.freeze([...this.#playlists, playlist]);
  }

  /** Lists these and no others. */
  setPlaylists(playlists: readonly Playlist[]): void {
    this.#playlists = Object.freeze([...playlists]);
  }

  /**
   * Lists a playlist that is made of the tracks, and made again with every change of them; none as long as
   * `make` answers undefined.
   */
  followTracks(make: (tracks: readonly Track[]) => Playlist | undefined): void {
    let listed: Playlist | undefined;
    const update = (): void => {
      const others = this.#playlists.filter((playlist) => playlist !== listed);
      listed = make(this.tracks);
      this.#playlists = Object.freeze(listed === undefined ? others : [...others, listed]);
    };
    update();
    this.on('tracks', update);
  }

  /** The playlist that a client names by file, without extension. */
  playlist(fileName: string): Playlist | undefined {
    return this.#playlists.find((playlist) => playlist.fileName === fileName);
  }

  /** Lists and counts a viewer until its answer is called or the stream ends, whichever comes first. */
  addSession(session: Session): () => void {
    if (this.closed) return () => {};
    const uncount = this.counters.viewer(session.kind);
    this.#sessions.set(session.id, session);
    const depart = () => {
      if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id);
      if (!this.#departures.delete(depart)) return;
      uncount();
      if (!session.byPlaylist) this.#beside--;
      this.emit('viewers', this.#sessions.size);
      this.emit('left', session);
    };
    this.#departures.add(depart);
    if (!session.byPlaylist) this.#beside++;
    this.emit('viewers', this.#sessions.size);
    this.emit('joined', session);
    return depart;
  }

  protected override closeChildren(): void {
    for (const depart of [...this.#departures]) depart();
  }
}
