import { randomUUID } from 'node:crypto';
import type { Flow, PublisherKind } from './counters.ts';
import type { Link } from './links.ts';

/** One viewer of one output stream, whatever the protocol. */
export interface Session {
  /** Unique among the viewers of its input stream on all nodes, under which the management API lists it. */
  readonly id: string;
  readonly kind: PublisherKind;
  readonly createdTime: number;
  readonly out: Flow;
  /** Takes only tracks that a playlist of its stream names; absent: any of them. */
  readonly byPlaylist?: boolean;
  /** Absent where its transport does not tell how it fares. */
  readonly link?: Link | undefined;
  /** Disconnects the viewer and keeps it out of the stream, on this node, as long as its URL names this session. */
  kick(): void;
}

/** Not a step in a path: the management API could not be asked for it. */
const NAME = /^(?!\.\.?$)[\x21-\x7e]{1,128}$/;

/** The name that a viewer's URL gives its session in the query `session`; undefined where it gives none that can be. */
export function sessionName(query: URLSearchParams): string | undefined {
  const name = query.get('session');
  return name !== null && NAME.test(name) ? name : undefined;
}

/** Id of a new session: the name that the viewer's URL gives it, else a UUID. */
export function sessionId(query: URLSearchParams): string {
  return sessionName(query) ?? randomUUID();
}
