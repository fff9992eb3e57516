import Type, { type Static } from 'typebox';
import { PUBLISHER_KINDS } from '../core/counters.ts';
import { localTime } from '../lib/local-time.ts';
import type { Registry } from '../core/registry.ts';
import { LinkSummary, linkSummary } from './link-summary.ts';
import { rate } from './stream-summary.ts';

export const SessionSummary = Type.Object({
  id: Type.String(),
  node: Type.String({ description: 'Which node it is connected to' }),
  publisher: Type.Enum(PUBLISHER_KINDS, { description: 'What `connections` of statistics counts it under' }),
  output: Type.String({ description: 'The output stream that it plays' }),
  createdTime: Type.String(),
  bitrateOut: Type.Integer({ description: 'Bits per second' }),
  totalBytesOut: Type.Integer(),
  srt: Type.Optional(LinkSummary),
});
export type SessionSummary = Static<typeof SessionSummary>;

interface SessionPage {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  /** Id before the first of the page. */
  readonly after: string;
  readonly count: number;
}

/** Sessions of a stream on one node. @param node id of that node */
export function sessionSummaries(registry: Registry, node: string, page: SessionPage): SessionSummary[] {
  const application = registry.vhosts.get(page.vhost)?.applications.get(page.app);
  const views = application?.views(page.stream) ?? [];
  const viewers = application?.recordingViewers.of(page.stream) ?? [];
  const outputs = views.flatMap((view) => [...view.outputs.values()]);
  const sessions = outputs.flatMap(({ name, sessions }) =>
    Array.from(sessions.values(), (session) => ({ id: session.id, output: name, session })),
  );
  const recorded = viewers.map((session) => ({ id: session.id, output: page.stream, session }));
  return pageOf([...sessions, ...recorded], page).map(({ id, output, session: { kind, createdTime, out, link } }) => ({
    id,
    node,
    publisher: kind,
    output,
    createdTime: localTime(createdTime),
    bitrateOut: rate(out),
    totalBytesOut: out.totalBytes,
    ...(link?.figures && { srt: linkSummary(link.figures, link.figures.counts) }),
  }));
}

/** Sessions of a page, from those of one node or several. */
export function pageOf<S extends { readonly id: string }>(
  sessions: readonly S[],
  { after, count }: Pick<SessionPage, 'after' | 'count'>,
): S[] {
  return sessions
    .filter(({ id }) => id > after)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .slice(0, count);
}
