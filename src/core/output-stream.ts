import type { Packet } from './packet.ts';
import type { Playlist } from './playlist.ts';
import { ShownCues } from './shown-cues.ts';
import { SeiInsertion, type UserData } from './sei-insertion.ts';
import type { Session } from './session.ts';
import type { Timebase } from './timebase.ts';
import type { Track } from './track.ts';
import { Stream } from './stream.ts';
import type { InputStream } from './input-stream.ts';

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
  readonly shownCues = new ShownCues();
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
    if (packet.track.type === 'subtitle') this.shownCues.add(packet, packet.track);
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
    const unlink = session.link && this.counters.link('out', session.link);
    this.#sessions.set(session.id, session);
    const depart = () => {
      if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id);
      if (!this.#departures.delete(depart)) return;
      uncount();
      unlink?.();
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
