import { joinKey } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Counters } from '../core/counters.ts';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';

/** An object of statistics, and its counters on this node: none when it exists only on others. */
export interface Place {
  /** Key, which is the same on all nodes. */
  readonly key: string;
  readonly live: readonly Counters[];
  /** Whether it is a stream: there may be many of them. */
  readonly isStream: boolean;
}

const SERVER = joinKey('server');

export function serverPlace({ counters }: Registry): Place {
  return { key: SERVER, live: [counters], isStream: false };
}

/** The revision in the key makes a virtual host that was created anew or restarted begin at 0. */
export function vhostPlace({ name, revision, counters }: VirtualHost): Place {
  return { key: `${SERVER}/${joinKey(name, String(revision))}`, live: [counters], isStream: false };
}

export function applicationPlace({ vhost, name, revision, counters }: Application): Place {
  return { key: `${vhostPlace(vhost).key}/${joinKey(name, String(revision))}`, live: [counters], isStream: false };
}

/** Place of an input stream by its name, with the relays of it here when another node has it. */
export function streamPlace(application: Application, name: string): Place {
  const live = application.views(name).map(({ counters }) => counters);
  return { key: streamKey(applicationPlace(application), name), live, isStream: true };
}

/** Places of all objects that this node counts. */
export function* places(registry: Registry): IterableIterator<Place> {
  yield serverPlace(registry);
  for (const vhost of registry.vhosts.values()) {
    yield vhostPlace(vhost);
    for (const application of vhost.applications.values()) {
      const place = applicationPlace(application);
      yield place;
      const streams = Map.groupBy(countersOfStreams(application), ([name]) => name);
      for (const [name, all] of streams)
        yield { key: streamKey(place, name), live: all.map(([, counters]) => counters), isStream: true };
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
