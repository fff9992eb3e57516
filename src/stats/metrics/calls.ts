import type { Histogram } from '../../lib/histogram.ts';
import { counter, histogram, type Family, type Sample } from './family.ts';

interface Calls {
  readonly seconds: Histogram;
  readonly failed: number;
}

export interface CallSources {
  /** Calls that the management API answered. */
  readonly api: {
    readonly all: Iterable<{ readonly method: string; readonly route: string; readonly status: number; count: number }>;
    readonly seconds: ReadonlyMap<string, Histogram>;
  };
  /** Calls to the control servers of admission webhooks. */
  readonly webhooks: Readonly<Record<string, Calls>>;
  /** Running sessions that were ended because they were not allowed any more, by what said so. */
  readonly revoked: () => Readonly<Record<string, number>>;
  /** Calls to other nodes. */
  readonly peers: ReadonlyMap<string, Calls>;
}

/** Metrics of calls that this node answers, and of calls that it makes. */
export function callFamilies({ api, webhooks, revoked, peers }: CallSources): Family[] {
  return [
    counter('kiln_api_requests_total', 'Calls of the management API, by route and status.', () =>
      Array.from(api.all, ({ method, route, status, count }) => {
        return { labels: { method, route, status: String(status) }, value: count };
      }),
    ),
    histogram('kiln_api_request_seconds', 'Time until a call of the management API was answered, by route.', () =>
      Array.from(api.seconds, ([route, seconds]) => [{ route }, seconds] as const),
    ),
    histogram(
      'kiln_webhook_call_seconds',
      'Time until the control servers had answered or failed, by what was asked: opening, recheck or closing of a session.',
      () => Object.entries(webhooks).map(([kind, { seconds }]) => [{ kind }, seconds] as const),
    ),
    counter('kiln_webhook_failures_total', 'Calls that no control server has answered as it should.', () =>
      failures('kind', Object.entries(webhooks)),
    ),
    counter('kiln_sessions_revoked_total', 'Running sessions that were ended: they were not allowed any more.', () =>
      Object.entries(revoked()).map(([reason, value]) => ({ labels: { reason }, value })),
    ),
    histogram('kiln_peer_call_seconds', 'Time until another node had answered a call of this one, by call.', () =>
      Array.from(peers, ([call, { seconds }]) => [{ call }, seconds] as const),
    ),
    counter('kiln_peer_call_failures_total', 'Calls to other nodes that got no answer.', () => failures('call', peers)),
  ];
}

function failures(label: string, all: Iterable<readonly [string, Calls]>): Sample[] {
  return Array.from(all, ([name, { failed }]) => ({ labels: { [label]: name }, value: failed }));
}
