import { LivePublisher } from '../load/live-publisher.ts';
import { LlhlsPlayer } from '../load/llhls-player.ts';
import type { Watched } from '../load/programs/watch-named.ts';
import { until, untilWorks } from '../time/until.ts';
import type { Chain, TreeCluster } from './cluster.ts';

/** For whatever has stopped to come again once all is mended. */
const COMES_WITHIN_MS = 30_000;

/** A stream of the owner, and of every node a viewer by LL-HLS and one by WebRTC. */
export class Audience {
  readonly name: string;
  readonly chain: Chain;
  readonly publisher: LivePublisher;
  readonly #cluster: TreeCluster;
  readonly #players = new Map<number, LlhlsPlayer>();

  private constructor(cluster: TreeCluster, name: string, chain: Chain, publisher: LivePublisher) {
    this.#cluster = cluster;
    this.name = name;
    this.chain = chain;
    this.publisher = publisher;
  }

  /** Publishes another stream; its viewers come in the order of its way, which therefore has three levels. */
  static async open(cluster: TreeCluster): Promise<Audience> {
    const { owner, clip } = cluster;
    const { name, chain } = cluster.nextStream();
    // a store that was emptied gives nothing for some seconds
    const publisher = await untilWorks(`${name} is published`, () => LivePublisher.start(owner.ports.rtmp, name, clip));
    const audience = new Audience(cluster, name, chain, publisher);
    await owner.liveStream(name);
    for (const at of chain) await audience.join(at);
    return audience;
  }

  /** The master playlist. */
  get master(): string {
    return `/app/${this.name}/llhls.m3u8`;
  }

  /** Viewers come to a node that has none. */
  async join(at: number): Promise<void> {
    const node = this.#cluster.nodes[at];
    if (node === undefined) return;
    const options = { port: node.ports.http, master: this.master, hints: at % 2 === 0 };
    this.#players.set(at, await untilWorks(`${this.name} plays`, () => LlhlsPlayer.start(options)));
    const url = node.httpUrl(`/app/${this.name}?direction=whep`);
    const watch = { name: this.#watcher(at), url };
    await untilWorks(`${this.name} is watched`, () => this.#cluster.watchers.ask('watch', watch));
  }

  /** Those of a node are gone with it. */
  async leave(at: number): Promise<void> {
    this.#players.get(at)?.close();
    this.#players.delete(at);
    await this.#cluster.watchers.ask('leave', { names: [this.#watcher(at)] });
  }

  async close(): Promise<void> {
    for (const at of this.chain) await this.leave(at);
    this.publisher.close();
  }

  /** What the WebRTC viewer of each node has seen. */
  async watched(): Promise<ReadonlyMap<number, Watched>> {
    const reports = await this.#cluster.watchers.ask('report', undefined);
    return new Map(
      this.chain.flatMap((at) => {
        const report = reports[this.#watcher(at)];
        return report === undefined ? [] : [[at, report] as const];
      }),
    );
  }

  /**
   * Waits until every viewer has what is being published now.
   * @throws Error when one has ended or gets nothing more, or a player of LL-HLS has missed a frame
   */
  async playsOn(): Promise<void> {
    const { frames, connected } = this.publisher;
    const { ids } = this.#cluster;
    if (!connected) throw new Error(`the owner has lost the publisher of ${this.name}`);
    for (const [at, player] of this.#players) {
      const who = `the LL-HLS player of ${this.name} on ${ids[at]}`;
      const hasIt = (): boolean => player.failures.length > 0 || player.frames.last >= frames;
      await until(`${who} has frame ${frames}`, hasIt, COMES_WITHIN_MS);
      if (player.failures.length > 0) throw new Error(`${who} has ended: ${player.failures.join('; ')}`);
      const { seen, due } = player.frames.counts(frames);
      if (seen < due) throw new Error(`${who} has missed ${due - seen} of ${due} frames`);
    }
    await untilWorks(
      `frame ${frames} of ${this.name} is at the WebRTC viewers`,
      async () => {
        for (const [at, viewer] of await this.watched()) {
          const state = viewer.connected ? 'connected' : 'not connected';
          if (viewer.last < frames) throw new Error(`that on ${ids[at]} is ${state}, and has frame ${viewer.last}`);
        }
      },
      COMES_WITHIN_MS,
    );
  }

  #watcher(at: number): string {
    return `${this.name} on ${this.#cluster.ids[at]}`;
  }
}
