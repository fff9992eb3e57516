import Type from 'typebox';
import { ranked, type Cluster, type NodeRow } from '#cluster';
import { BackOff } from '../lib/back-off.ts';
import { KilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { TaskNameSchema, taskKey, type TaskDefinition, type TaskName } from './definition.ts';
import { TaskEnd } from './kind.ts';
import { pause } from '../lib/pause.ts';
import { successors } from './successors.ts';
import type { TaskRunner } from './runner.ts';
import type { Limiter } from '../lib/limiter.ts';

/** Pause before the other nodes are asked again. */
const AGAIN_MS = 2000;
/** Time between two checks whether this node has what a task needs. */
const LOOK_MS = 10_000;
/** Longest time between them while no other node has it either. */
const LONGEST_PAUSE_MS = 60_000;
/** How long a node that is asked may take to make a run ready. */
const READY_MS = 25_000;

/** Makes a run of a task of the calling node ready. `anyway`: even if what it needs is missing. */
export const STAND_BY = definePeerCall(
  'tasks/stand-by',
  Type.Object({ name: TaskNameSchema, anyway: Type.Boolean() }),
  Type.Object({ ready: Type.Boolean() }),
);

export interface TaskHandOverOptions {
  readonly name: TaskName;
  readonly cluster: Pick<Cluster, 'self' | 'nodes' | 'state'>;
  readonly calls: PeerCalls;
  /** Limit how many tasks a node hands over at the same time: because it drains, and because it lacks what they need. */
  readonly handOvers: Limiter;
  readonly moves: Limiter;
  /** Whether this node has what the task needs. */
  readonly suits: (definition: TaskDefinition) => Promise<boolean>;
  readonly log: Logger;
}

/**
 * Hands a task over: of a node that drains, or that lacks what the task needs while another one has it. One that would be
 * interrupted goes on until another node stands by, and ends at a moment of its choice; as long as no other node can run it,
 * it stays.
 */
export class TaskHandOver {
  readonly #options: TaskHandOverOptions;
  #definition: TaskDefinition | undefined;
  /** Ends the present attempt of either kind. */
  #stop: AbortController | undefined;
  #isWatching = false;
  #rest = new AbortController();

  constructor(options: TaskHandOverOptions) {
    this.#options = options;
  }

  /** Looks for another node, since this one drains; where it does so already, it looks again soon. */
  begin(runner: TaskRunner, definition: TaskDefinition): void {
    this.#definition = definition;
    if (this.#stop !== undefined && !this.#isWatching) return this.#rest.abort();
    this.#start(false, (signal) => this.#go(runner, definition, signal));
  }

  /** Checks now and then whether this node lacks what the task needs, and soon when the definition has changed. */
  watch(runner: TaskRunner, definition: TaskDefinition): void {
    const before = this.#definition;
    this.#definition = definition;
    if (this.#stop === undefined || !this.#isWatching)
      this.#start(true, (signal) => this.#watch(runner, definition, signal));
    else if (before?.spec !== definition.spec) this.#rest.abort();
  }

  /** Keeps the task here, unless it has left already. Idempotent. */
  cancel(): void {
    this.#stop?.abort();
    this.#stop = undefined;
  }

  #start(isWatching: boolean, run: (signal: AbortSignal) => Promise<void>): void {
    const { log, name } = this.#options;
    this.cancel();
    this.#isWatching = isWatching;
    this.#stop = new AbortController();
    run(this.#stop.signal).catch((error: unknown) =>
      log.error({ ...name, err: error }, 'the task is not handed over because of an internal error'),
    );
  }

  async #watch(runner: TaskRunner, first: TaskDefinition, signal: AbortSignal): Promise<void> {
    const { log, name, suits, moves } = this.#options;
    const backOff = new BackOff(LONGEST_PAUSE_MS);
    while (!signal.aborted) {
      this.#rest = new AbortController();
      await pause(Math.max(LOOK_MS, backOff.next()), AbortSignal.any([signal, this.#rest.signal]));
      if (signal.aborted) return;
      if (this.#rest.signal.aborted) backOff.reset();
      const definition = this.#definition ?? first;
      try {
        if (await suits(definition)) backOff.reset();
        else if (await moves.run(() => this.#ask(definition, signal, false))) {
          log.info({ ...name }, 'this node lacks what the task needs, and another one has it: it is handed over');
          return runner.handOver(new TaskEnd('handedOver', 'another node has what the task needs'), signal);
        }
      } catch (error) {
        log.debug({ ...name, err: error }, 'this node does not know whether it has what the task needs');
      }
    }
  }

  async #go(runner: TaskRunner, first: TaskDefinition, signal: AbortSignal): Promise<void> {
    const { log, name } = this.#options;
    let isLogged = false;
    while (!signal.aborted) {
      let isReady = false;
      try {
        isReady = await this.#isReady(runner, this.#definition ?? first, signal);
      } catch (error) {
        log.error({ ...name, err: error }, 'the task cannot be handed over now: trying again');
      }
      if (signal.aborted) return;
      if (isReady) return runner.handOver(new TaskEnd('handedOver', 'the node is draining'), signal);
      if (!isLogged)
        log.info({ ...name }, 'no other node can run the task now: it goes on here while this node drains');
      isLogged = true;
      this.#rest = new AbortController();
      await pause(AGAIN_MS, AbortSignal.any([signal, this.#rest.signal]));
    }
  }

  async #isReady(runner: TaskRunner, definition: TaskDefinition, signal: AbortSignal): Promise<boolean> {
    if (this.#nodes(definition).length === 0) return false;
    if (!runner.isInterruptible) return true;
    const { suits, handOvers } = this.#options;
    return await handOvers.run(async () => this.#ask(definition, signal, !(await suits(definition))));
  }

  /**
   * Asks one node after the other to make a run ready.
   * @param anyway asks them to do so even if what the task needs is missing
   * @returns whether one has
   */
  async #ask(definition: TaskDefinition, signal: AbortSignal, anyway: boolean): Promise<boolean> {
    // no node can claim it
    if (this.#options.cluster.state === 'degraded') return false;
    for (const node of this.#nodes(definition)) {
      if (signal.aborted) return false;
      if (await this.#standsBy(node, anyway)) return true;
    }
    return false;
  }

  async #standsBy(node: NodeRow, anyway: boolean): Promise<boolean> {
    const { calls, name, log } = this.#options;
    try {
      return (await calls.call(node, STAND_BY, { name, anyway }, READY_MS)).ready;
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      // a node of another version takes what is free
      if (error.code === 'callUnknown') return !this.#isWatching;
      log.debug({ ...name, node: node.id, reason: error.message }, 'a node cannot be asked to run the task');
      return false;
    }
  }

  /** Nodes that can be asked, in the order in which they would claim the task. */
  #nodes(definition: TaskDefinition): NodeRow[] {
    const { name, cluster } = this.#options;
    const able = successors({ self: cluster.self, nodes: cluster.nodes() }, definition);
    return ranked(taskKey(name), able).flatMap((id) => able.find((node) => node.id === id) ?? []);
  }
}
