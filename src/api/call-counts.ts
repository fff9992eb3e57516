import type { FastifyInstance } from 'fastify';
import { Histogram } from '../lib/histogram.ts';

export interface CallCount {
  readonly method: string;
  /** Route with the names of its parameters; `none` for an unknown one. */
  readonly route: string;
  readonly status: number;
  count: number;
}

interface RouteCounts {
  readonly seconds: Histogram;
  /** By method and status. */
  readonly calls: CallCount[];
}

/** Counts of answers by route. Clients cannot add routes. */
export class CallCounts {
  readonly #all: CallCount[] = [];
  readonly #routes = new Map<string, RouteCounts>();

  get all(): Iterable<Readonly<CallCount>> {
    return this.#all;
  }

  /** Seconds from request to answer, by route. */
  get seconds(): ReadonlyMap<string, Histogram> {
    return new Map(Array.from(this.#routes, ([route, { seconds }]) => [route, seconds]));
  }

  add(method: string, route: string, status: number, seconds: number): void {
    const of = this.#routes.get(route) ?? this.#addRoute(route);
    of.seconds.add(seconds);
    const known = of.calls.find((one) => one.status === status && one.method === method);
    if (known === undefined) this.#addFirst(of, { method, route, status, count: 1 });
    else known.count++;
  }

  #addRoute(route: string): RouteCounts {
    const counts = { seconds: new Histogram(), calls: [] };
    this.#routes.set(route, counts);
    return counts;
  }

  #addFirst({ calls }: RouteCounts, first: CallCount): void {
    calls.push(first);
    this.#all.push(first);
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
