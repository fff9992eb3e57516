import { joinKey } from '#cluster';
import type { Application } from '../../core/application.ts';
import { nameObjection } from '../../core/names.ts';
import type { Registry } from '../../core/registry.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { KilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { MissMemory } from '../../directory/miss-memory.ts';
import type { OriginMaps } from '../../origin-map/origin-maps.ts';
import type { StreamChanges } from '../../directory/stream-changes.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from './error.ts';
import { matchOrigin, storeOrder } from './origin-match.ts';
import type { PulledStreams } from './pulled-streams.ts';
import type { PullOrder } from './spec.ts';

/** Concurrent lookups, in all and of one virtual host; further requests find nothing. */
const MAX_ASKED = 200;
const MAX_ASKED_OF_VHOST = 50;
/** Time for which a stream that no origin has is not looked up again: longer after each miss. */
const MISSING = { stepMs: 1000, longestMs: 10_000, max: 10_000 };
/** Time until viewers can play a pulled stream, on this node or another. */
const APPEARS_MS = 5000;
/** Time within which the node that pulls a stream has claimed its name. */
const NAMED_MS = 500;

export interface DemandOptions {
  readonly registry: Registry;
  /** Whether another node has room, and this one has not. */
  readonly isCrowded: () => boolean;
  readonly directory: Pick<StreamDirectory, 'locate' | 'known' | 'ownerOf'>;
  readonly changes: StreamChanges;
  readonly pulls: Pick<PulledStreams, 'create' | 'createHere'>;
  readonly maps: Pick<OriginMaps, 'find'>;
  readonly log: Logger;
}

/** Pulls on demand the streams that no node has, from origins of `Origins` and `OriginMapStore`. */
export class Demand {
  readonly #options: DemandOptions;
  readonly #asked = new Map<string, Promise<boolean>>();
  readonly #askedOf = new Map<VirtualHost, number>();
  readonly #missing = new MissMemory(MISSING);
  readonly #failures: FaultLog;

  constructor(options: DemandOptions) {
    this.#options = options;
    // unauthenticated clients may request any name
    this.#failures = new FaultLog(options.log);
  }

  /**
   * Pulls a stream, once for all concurrent requests.
   * @param name of the output stream
   * @returns whether it is playable now, on this node or on another that pulled it first
   */
  readonly bring = (application: Application, name: string, query: URLSearchParams): Promise<boolean> => {
    const key = joinKey(application.vhost.name, application.name, name);
    const present = this.#asked.get(key);
    if (present !== undefined) return present;
    const { vhost } = application;
    const asked = this.#askedOf.get(vhost) ?? 0;
    const mayAsk = asked < MAX_ASKED_OF_VHOST && this.#asked.size < MAX_ASKED;
    if (!mayAsk || !this.#mayBe(vhost, name) || this.#missing.has(key)) return Promise.resolve(false);
    this.#askedOf.set(vhost, asked + 1);
    const answer = this.#bring(application, name, query)
      .then((found) => {
        if (found) this.#missing.delete(key);
        else this.#missing.add(key);
        return found;
      })
      .finally(() => this.#answered(key, vhost));
    this.#asked.set(key, answer);
    return answer;
  };

  /** Pulls a stream that no node has, for a task that waits for it. */
  readonly fetch = (application: Application, name: string): void => {
    const { directory, log } = this.#options;
    const fetched = async (): Promise<void> => {
      if (isPlayable(application, name) || (await directory.locate(application, name)) !== undefined) return;
      await this.bring(application, name, new URLSearchParams());
    };
    fetched().catch((error: unknown) =>
      log.error(
        { err: error, stream: `${application.internalName}/${name}` },
        'a stream could not be pulled for a task',
      ),
    );
  };

  /**
   * Creates the application of a stream that an origin has, from the template of its virtual host.
   * @returns undefined when no origin has it
   */
  readonly application = async (vhost: VirtualHost, app: string, name: string): Promise<Application | undefined> => {
    if (!this.#mayBe(vhost, name)) return undefined;
    const key = joinKey(vhost.name, app, name);
    const matched = matchOrigin(vhost.config.origins, app, name, new URLSearchParams()) !== undefined;
    if (!matched && this.#missing.has(key)) return undefined;
    if (!matched && (await this.#options.maps.find(vhost, app, name)) === undefined) {
      this.#missing.add(key);
      return undefined;
    }
    try {
      return vhost.demandApplication(app);
    } catch (error) {
      if (error instanceof KilnError) return undefined;
      throw error;
    }
  };

  /** Whether an origin that may have the stream is configured: most virtual hosts have none. */
  #mayBe({ config }: VirtualHost, name: string): boolean {
    return (config.origins !== undefined || config.originMapStore !== undefined) && nameObjection(name) === undefined;
  }

  async #bring(application: Application, name: string, query: URLSearchParams): Promise<boolean> {
    const { maps } = this.#options;
    const { origins } = application.vhost.config;
    const matched = matchOrigin(origins, application.name, name, query);
    if (matched !== undefined && (await this.#pull(application, name, matched)))
      return await this.#appears(application, name);
    const url = await maps.find(application.vhost, application.name, name);
    if (url === undefined || !(await this.#pull(application, name, storeOrder(origins, url)))) return false;
    return await this.#appears(application, name);
  }

  /** @returns whether it is pulled now, on any node */
  async #pull(application: Application, name: string, order: PullOrder): Promise<boolean> {
    const { pulls, registry, isCrowded } = this.#options;
    try {
      if (registry.draining || isCrowded()) await pulls.create(application, name, order);
      else await pulls.createHere(application, name, order);
      return true;
    } catch (error) {
      if (error instanceof KilnError && error.code === 'streamExists') return true;
      if (!(error instanceof KilnError || error instanceof PullError)) throw error;
      const from = order.spec.urls.map(shownUrl).join(', ');
      this.#failures.count(
        `${application.internalName}/${name}, requested by a viewer or a push, could not be pulled from ${from}: ${error.message}`,
      );
      return false;
    }
  }

  /** @returns false when viewers cannot play it in time, from this node or another */
  async #appears(application: Application, name: string): Promise<boolean> {
    const { changes, directory } = this.#options;
    const stream = { vhost: application.vhost.name, app: application.name, stream: name };
    const since = performance.now();
    const watch = changes.watch(application, (input) => application.mayPutOut(input, name));
    try {
      if (isPlayable(application, name) || (await directory.locate(application, name)) !== undefined) return true;
      for (let isOwned = true; isOwned && !application.closed;) {
        const waited = performance.now() - since;
        if (waited >= APPEARS_MS) return false;
        await watch.next((waited < NAMED_MS ? NAMED_MS : APPEARS_MS) - waited);
        if (isPlayable(application, name) || directory.known(application, name) !== undefined) return true;
        if (performance.now() - since < NAMED_MS) continue;
        isOwned = (await directory.ownerOf(stream)) !== undefined;
      }
      return false;
    } finally {
      watch.close();
    }
  }

  #answered(key: string, vhost: VirtualHost): void {
    this.#asked.delete(key);
    const left = (this.#askedOf.get(vhost) ?? 1) - 1;
    if (left > 0) this.#askedOf.set(vhost, left);
    else this.#askedOf.delete(vhost);
  }
}

function isPlayable(application: Application, name: string): boolean {
  const output = application.outputs.get(name);
  return output !== undefined && output.tracks.length > 0;
}
