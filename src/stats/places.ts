import { joinKey } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Counters } from '../core/counters.ts';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';

/** An object of statistics, and its counters on this node: none when it exists only on others. */
export interface Place {
  /** The same on all nodes. */
  readonly key: string;
  readonly live: readonly Counters[];
}

const SERVER = joinKey('server');

export function serverPlace({ counters }: Registry): Place {
  return { key: SERVER, live: [counters] };
}

/** What is made anew under a name, or restarted by a change, begins at 0: its revision is another. */
export function vhostPlace({ name, revision, counters }: VirtualHost): Place {
  return { key: `${SERVER}/${joinKey(name, String(revision))}`, live: [counters] };
}

export function applicationPlace({ vhost, name, revision, counters }: Application): Place {
  return { key: `${vhostPlace(vhost).key}/${joinKey(name, String(revision))}`, live: [counters] };
}

/** An input stream by its name, with what is played of it here when another node has it. */
export function streamPlace(application: Application, name: string): Place {
  const live = application.views(name).map(({ counters }) => counters);
  return { key: streamKey(applicationPlace(application), name), live };
}

/** Everything that this node counts. */
export function* places(registry: Registry): IterableIterator<Place> {
  yield serverPlace(registry);
  for (const vhost of registry.vhosts.values()) {
    yield vhostPlace(vhost);
    for (const application of vhost.applications.values()) {
      const place = applicationPlace(application);
      yield place;
      const streams = Map.groupBy(countersOfStreams(application), ([name]) => name);
      for (const [name, all] of streams)
        yield { key: streamKey(place, name), live: all.map(([, counters]) => counters) };
    }
  }
}

function streamKey({ key }: Place, name: string): string {
  return `${key}/${joinKey(name)}`;
}

function* countersOfStreams(application: Application): IterableIterator<readonly [stream: string, counters: Counters]> {
  for (const { name, counters } of application.streams()) yield [name, counters];
  for (const { name, counters } of application.elsewhere()) yield [name, counters];
}
