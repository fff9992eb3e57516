import { UnavailableError, type Cluster, type Owner } from '#cluster';
import { BackOff } from '../core/back-off.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { StreamDirectory } from '../origins/stream-directory.ts';
import { taskKey, type TaskDefinition, type TaskName } from './definition.ts';
import type { TaskDefinitions } from './definitions.ts';
import { TaskEnd, type TaskKind } from './kind.ts';
import { heirs, ranked } from './rank.ts';
import { Tenure } from './tenure.ts';

/** How much later than the one before it each node of the ranking claims a task that nobody has. */
const STEP_MS = 300;
/** After a claim that could not be made. */
const AGAIN_MS = 1000;
/** The longest pause after claims that could not be made use of. */
const LONGEST_PAUSE_MS = 30_000;

export interface SeatOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly definitions: TaskDefinitions;
  readonly kind: TaskKind;
  readonly log: Logger;
  /** Hears that there is nothing to decide about any more. */
  readonly onEmpty: () => void;
}

/** One task as this node sees it: whether anybody has it, and whether this node is to take it or to give it up. */
export class Seat {
  readonly name: TaskName;
  readonly #options: SeatOptions;
  readonly #key: string;
  #owner: Owner | undefined;
  #tenure: Tenure | undefined;
  #claiming = false;
  /** Since when nobody has it, and when it may be claimed at the earliest; milliseconds of the monotonic clock. */
  #vacantSince: number | undefined;
  #notBefore = 0;
  /** After a claim that this node could not make use of, others have a try. */
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(name: TaskName, options: SeatOptions) {
    this.name = name;
    this.#options = options;
    this.#key = taskKey(name);
  }

  /** Ends when what this node runs of it has ended. */
  get over(): Promise<void> | undefined {
    return this.#tenure?.over;
  }

  /** Somebody has it now, or nobody. */
  setOwner(owner: Owner | undefined): void {
    this.#owner = owner;
    this.consider();
  }

  /** Looks at everything anew. */
  consider(): void {
    if (this.#closed) return;
    const definition = this.#options.definitions.get(this.name);
    if (this.#tenure !== undefined) this.#review(this.#tenure, definition);
    else if (definition !== undefined && this.#owner === undefined) this.#aspire(definition);
    else this.#rest(definition);
  }

  /**
   * Begins a task here that is not defined yet.
   * @returns undefined when somebody has it
   * @throws UnavailableError
   */
  async begin(definition: TaskDefinition): Promise<Tenure | undefined> {
    // what was deleted is about to end
    if (this.#tenure?.isNew === false && this.#options.definitions.get(this.name) === undefined)
      await this.#tenure.over;
    if (this.#tenure !== undefined || this.#claiming) return undefined;
    return await this.#claim(definition, true);
  }

  /** Gives up what this node has of it. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#tenure?.stop(new TaskEnd('handedOver', 'the node stops'));
  }

  /** What becomes of a task that runs here. */
  #review(tenure: Tenure, definition: TaskDefinition | undefined): void {
    if (definition !== undefined) tenure.define(definition);
    else if (!tenure.isNew) void tenure.stop(new TaskEnd('removed', 'the task was deleted'));
    if (definition === undefined) return;
    const { cluster, kind } = this.#options;
    if (kind.follows !== undefined) {
      this.#follow(tenure, kind.follows(definition.spec));
      return;
    }
    if (cluster.draining && heirs({ self: cluster.self, nodes: cluster.nodes() }, definition).length > 0)
      void tenure.stop(new TaskEnd('handedOver', 'the node is drained'));
  }

  /** A task goes where its stream is; as long as that is nowhere, it stays. */
  #follow(tenure: Tenure, stream: string): void {
    const application = this.#application;
    if (application === undefined || application.outputs.has(stream)) return;
    void this.#options.directory
      .locate(application, stream)
      .then((location) => {
        if (location === undefined || application.outputs.has(stream)) return;
        void tenure.stop(new TaskEnd('handedOver', 'its stream is on another node'));
      })
      .catch((error: unknown) => this.#fault(error));
  }

  /** Nobody has it: this node claims it when its turn has come. */
  #aspire(definition: TaskDefinition): void {
    clearTimeout(this.#timer);
    const rank = this.#rank(definition);
    const now = performance.now();
    this.#vacantSince ??= now;
    if (rank === undefined || this.#claiming) return;
    const due = Math.max(this.#vacantSince + rank * STEP_MS, this.#notBefore);
    if (due > now) this.#timer = setTimeout(() => this.consider(), due - now);
    else void this.#claim(definition, false).catch((error: unknown) => this.#fault(error));
  }

  #rest(definition: TaskDefinition | undefined): void {
    clearTimeout(this.#timer);
    this.#vacantSince = undefined;
    if (definition === undefined && this.#owner === undefined && !this.#claiming) this.#options.onEmpty();
  }

  /** How many are to claim it before this node does; undefined when this node is not to. */
  #rank(definition: TaskDefinition): number | undefined {
    const { cluster, kind, definitions } = this.#options;
    if (cluster.state === 'degraded') return undefined;
    if (kind.follows !== undefined) {
      return this.#application?.outputs.has(kind.follows(definition.spec)) === true ? 0 : undefined;
    }
    if (!this.#hasApplication && !definitions.isLeftOver(this.name, definition)) return undefined;
    const rank = ranked(this.#key, cluster.nodes()).indexOf(cluster.self.id);
    return rank < 0 ? undefined : rank;
  }

  async #claim(definition: TaskDefinition, isNew: boolean): Promise<Tenure | undefined> {
    const { cluster, kind, definitions } = this.#options;
    this.#claiming = true;
    try {
      const claim = await cluster.claim(this.#key, null, { silence: 'stop', keepMs: kind.keepMs });
      if ('owner' in claim) return undefined;
      const { lease } = claim;
      // who deletes the definition looks for claims afterwards: one of both finds what the other did
      if (!isNew) await cluster.config.sync();
      if (this.#closed || (definitions.get(this.name) === undefined) !== isNew) {
        void lease.release();
        return undefined;
      }
      const tenure = new Tenure({ ...this.#options, name: this.name, definition, lease, isNew });
      this.#tenure = tenure;
      void tenure.over.then(() => this.#left(tenure));
      return tenure;
    } catch (error) {
      this.#notBefore = performance.now() + AGAIN_MS;
      throw error;
    } finally {
      this.#claiming = false;
    }
  }

  #left({ hasBegun }: Tenure): void {
    this.#tenure = undefined;
    this.#vacantSince = undefined;
    if (hasBegun) this.#backOff.reset();
    else this.#notBefore = performance.now() + STEP_MS + this.#backOff.next();
    // the claims that are known here still tell of this one
    this.consider();
  }

  #fault(error: unknown): void {
    const { log } = this.#options;
    if (error instanceof UnavailableError)
      log.debug({ ...this.name, reason: error.message }, 'a task cannot be claimed');
    else log.error({ ...this.name, err: error }, 'a task cannot be claimed');
  }

  get #application() {
    return this.#options.registry.vhosts.get(this.name.vhost)?.applications.get(this.name.app);
  }

  get #hasApplication(): boolean {
    try {
      return this.#options.registry.vhosts.get(this.name.vhost)?.demandConfig(this.name.app) !== undefined;
    } catch (error) {
      if (error instanceof KilnError) return false;
      throw error;
    }
  }
}
