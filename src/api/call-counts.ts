import type { FastifyInstance } from 'fastify';
import { Histogram } from '../lib/histogram.ts';

export interface CallCount {
  readonly method: string;
  /** Route with the names of its parameters; `none` for an unknown one. */
  readonly route: string;
  readonly status: number;
  count: number;
}

/** Counts of answers by route. Clients cannot add routes. */
export class CallCounts {
  readonly #counts = new Map<string, CallCount>();
  readonly #seconds = new Map<string, Histogram>();

  get all(): Iterable<Readonly<CallCount>> {
    return this.#counts.values();
  }

  /** Seconds from request to answer, by route. */
  get seconds(): ReadonlyMap<string, Histogram> {
    return this.#seconds;
  }

  add(method: string, route: string, status: number, seconds: number): void {
    const key = `${method} ${status} ${route}`;
    const known = this.#counts.get(key) ?? { method, route, status, count: 0 };
    known.count++;
    this.#counts.set(key, known);
    const all = this.#seconds.get(route) ?? new Histogram();
    this.#seconds.set(route, all);
    all.add(seconds);
  }
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Counts every answer of an API, including those to unknown routes. */
export function countCalls(app: FastifyInstance, counts: CallCounts): void {
  app.addHook('onResponse', ({ method, routeOptions }, reply, done) => {
    const route = routeOptions.url ?? 'none';
    counts.add(METHODS.has(method) ? method : 'other', route, reply.statusCode, reply.elapsedTime / 1000);
    done();
  });
}
