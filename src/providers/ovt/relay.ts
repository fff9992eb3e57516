import { UnavailableError, UnreachableError, type Cluster, type NodeIdentity } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Packet } from '../../core/packet.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import type { Logger } from '../../log.ts';
import { relayPath } from '../../origins/relay-path.ts';
import type { StreamChanges, StreamWatch } from '../../origins/stream-changes.ts';
import type { Location, StreamDirectory } from '../../origins/stream-directory.ts';
import { OvtError } from '../../protocols/ovt/error.ts';
import { OvtClient, type OvtSink } from './client.ts';
import { LocalClock } from '../intake/local-clock.ts';

export interface RelayOptions {
  readonly cluster: Pick<Cluster, 'self' | 'connect'>;
  readonly directory: Pick<StreamDirectory, 'locate' | 'catchUp' | 'known' | 'knownOwner'>;
  readonly changes: StreamChanges;
  readonly log: Logger;
}

/** Whom a relay follows, and how. */
interface Followed {
  readonly owner?: NodeIdentity;
  readonly forGood?: boolean;
  readonly unreachableMs?: number;
}

const CONNECT_TIMEOUT_MS = 1500;
/** The owner says something every second. */
const SILENCE_MS = 3000;
const OPEN_MS = 3000;
/** The same while the owner cannot be reached: it may have died, and another node may have the stream soon. */
const HELD_MS = 8000;
/** How long viewers of an interrupted stream are kept while another node may continue it. */
const CONTINUED_MS = 30_000;
const UNUSED_MS = 10_000;
/** Timers know no longer time. */
const LONGEST_MS = 2 ** 31 - 1;
/** Between attempts at a node that has the stream, by the directory, and does not serve it. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 1000;

/**
 * One output stream of another node, for the viewers of this one. It follows the stream from owner to owner, and ends
 * some seconds after its last viewer has left.
 */
export class Relay implements OvtSink {
  readonly #application: Application;
  readonly #name: string;
  readonly #input: string;
  readonly #options: RelayOptions;
  readonly #log: Logger;
  readonly #clock = new LocalClock();
  readonly #end = new AbortController();
  readonly #onClose: () => void;
  #output: OutputStream | undefined;
  #client: OvtClient | undefined;
  /** While it plays: hears of another owner. */
  #watching: StreamWatch | undefined;
  #unused: NodeJS.Timeout | undefined;

  /** @param onClose called once */
  constructor(application: Application, name: string, input: string, options: RelayOptions, onClose: () => void) {
    this.#application = application;
    this.#name = name;
    this.#input = input;
    this.#options = options;
    this.#log = options.log.child({ stream: `${application.internalName}/${name}` });
    this.#onClose = onClose;
  }

  /**
   * Resolves when the relay is announced on this node.
   * @throws OvtError, UnreachableError why there is none; then it is closed
   */
  async open({ owner }: Location): Promise<OutputStream> {
    try {
      await this.#follow(OPEN_MS, { owner, unreachableMs: HELD_MS });
      if (this.#output === undefined || this.#output.closed) throw new OvtError('the stream has ended');
      return this.#output;
    } catch (error) {
      this.close('the stream could not be opened');
      throw error;
    }
  }

  /** Idempotent. */
  close(reason: string): void {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    clearTimeout(this.#unused);
    this.#watching?.close();
    this.#client?.close();
    this.#output?.input.close(reason);
    this.#log.info({ event: 'relay.ended', reason }, `the relay from another node has ended: ${reason}`);
    this.#onClose();
  }

  tracks(tracks: readonly Track[], playlists: readonly Playlist[]): void {
    if (this.#output !== undefined) {
      this.#output.setPlaylists(playlists);
      this.#output.setTracks(tracks);
      return;
    }
    const output = this.#application.relay(this.#input, this.#name, { type: 'Ovt', kind: 'ovt' });
    this.#output = output;
    output.setPlaylists(playlists);
    output.setTracks(tracks);
    output.on('viewers', () => this.#watch(output));
    output.once('close', (reason) => this.close(reason));
    this.#application.announce(output);
    this.#log.info({ event: 'stream.relayed' }, 'relayed from another node');
    this.#watch(output);
  }

  packet(packet: Packet): void {
    this.#output?.write(packet);
  }

  /** Called by the client: the owner, or the way to it, has gone. */
  end(reason: string, forGood: boolean): void {
    this.#client = undefined;
    this.#watching?.close();
    this.#watching = undefined;
    if (this.#output === undefined) return;
    this.#log.info({ reason }, 'the relayed stream was interrupted: looking for the node that continues it');
    void this.#continue(forGood).catch((error: Error) => this.close(`the stream was not continued: ${error.message}`));
  }

  async #continue(forGood: boolean): Promise<void> {
    await this.#follow(CONTINUED_MS, { forGood });
    if (!this.#end.signal.aborted) this.#log.info('the relayed stream continues');
  }

  /**
   * Tries to play the stream from whichever node has it. Without an owner, waits for one to be heard of.
   * @param what.owner who had it last, where that is known
   * @param what.unreachableMs as `withinMs` as long as the owner cannot be reached
   * @param what.forGood it ended on purpose: only a node that has its name already can continue it, not a later one
   * @throws OvtError, UnreachableError why the last attempt failed
   */
  async #follow(withinMs: number, what: Followed): Promise<void> {
    const watch = this.#options.changes.watch(this.#application, (input) => this.#mayComeOf(input));
    try {
      if (what.owner === undefined) await this.#options.directory.catchUp();
      const owner = await this.#tryUntil(withinMs, watch, what);
      if (this.#client !== undefined && owner !== undefined) void this.#stay(this.#client, owner, watch);
    } finally {
      if (this.#watching !== watch) watch.close();
    }
  }

  /** Goes on to another owner as soon as it is heard of: a host that has died is silent for longer than that. */
  async #stay(client: OvtClient, owner: NodeIdentity, watch: StreamWatch): Promise<void> {
    const { signal } = this.#end;
    this.#watching = watch;
    for (;;) {
      await watch.next(LONGEST_MS, signal);
      if (this.#client !== client || signal.aborted) return;
      const now = this.#owner();
      if (now === undefined || now.incarnation === owner.incarnation) continue;
      client.close();
      return this.end(`node ${now.id} has the stream now`, false);
    }
  }

  /** @returns who plays it; undefined when the relay was closed meanwhile */
  async #tryUntil(
    withinMs: number,
    watch: StreamWatch,
    { owner = this.#owner(), forGood = false, unreachableMs = withinMs }: Followed,
  ): Promise<NodeIdentity | undefined> {
    const { signal } = this.#end;
    const since = performance.now();
    for (let pause = FIRST_PAUSE_MS; ;) {
      const failure = owner === undefined ? new OvtError('no node has the stream') : await this.#attempt(owner);
      if (failure === undefined || signal.aborted) return owner;
      const left = since + (failure instanceof UnreachableError ? unreachableMs : withinMs) - performance.now();
      if (left <= 0) throw failure;
      if (forGood && !this.#isOwned()) throw new OvtError('the stream has ended');
      const hasChanged = await watch.next(owner === undefined ? left : Math.min(pause, left), signal);
      pause = hasChanged ? FIRST_PAUSE_MS : Math.min(2 * pause, MAX_PAUSE_MS);
      owner = signal.aborted ? undefined : this.#owner();
    }
  }

  /** @returns why it does not play */
  async #attempt(owner: NodeIdentity): Promise<Error | undefined> {
    try {
      await this.#connect(owner);
      return undefined;
    } catch (error) {
      if (error instanceof OvtError || error instanceof UnreachableError || error instanceof UnavailableError)
        return error;
      throw error;
    }
  }

  async #connect(owner: NodeIdentity): Promise<void> {
    const { vhost, name: app } = this.#application;
    const path = relayPath({ vhost: vhost.name, app, output: this.#name });
    const stream = await this.#options.cluster.connect(owner, path, CONNECT_TIMEOUT_MS);
    const target = `ovt://${owner.id}/${encodeURIComponent(app)}/${encodeURIComponent(this.#name)}`;
    const client = await OvtClient.connect(
      { stream, target },
      {
        log: this.#log,
        clock: this.#clock,
        plain: true,
        silenceMs: SILENCE_MS,
      },
    );
    this.#client = client;
    if (this.#end.signal.aborted) client.close();
    else await client.play(this);
  }

  /** As far as this node has heard. A publisher may have come to this very node. */
  #owner(): NodeIdentity | undefined {
    const { cluster, directory } = this.#options;
    if (this.#application.outputs.has(this.#name)) return cluster.self;
    return directory.known(this.#application, this.#name)?.owner;
  }

  #isOwned(): boolean {
    const { vhost, name: app } = this.#application;
    return this.#options.directory.knownOwner({ vhost: vhost.name, app, stream: this.#input }) !== undefined;
  }

  #mayComeOf(input: string): boolean {
    return input === this.#input || this.#application.mayPutOut(input, this.#name);
  }

  #watch(output: OutputStream): void {
    clearTimeout(this.#unused);
    if (output.watched || this.#end.signal.aborted) return;
    this.#unused = setTimeout(() => this.close('no viewers are left'), UNUSED_MS).unref();
  }
}
