import Type, { type Static } from 'typebox';
import { isSameIncarnation } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { kilnError } from '../errors.ts';
import { within } from '../lib/within.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { readStreamUrl } from './sources/stream-url.ts';
import { guideOf, type Guide } from './scheduled/guide.ts';
import type { MediaFiles } from './scheduled/media-files.ts';
import { readScheduleSpec, type ScheduleSpec } from './scheduled/spec.ts';
import { SCHEDULED } from './channel-kind.ts';

/** Time allowed to measure files; lengths that are not known by then stay unknown. */
const FILES_MS = 2000;
/** Time for other nodes to measure their files and answer. */
const ANSWER_MS = 2 * FILES_MS + 1000;

const Times = { begins: Type.Number(), ends: Type.Optional(Type.Number()) };
const Entry = Type.Object({
  ...Times,
  type: Type.Enum(['item', 'fallback', 'offair']),
  program: Type.Optional(Type.Object({ name: Type.String(), scheduled: Type.Number(), repeat: Type.Boolean() })),
  item: Type.Optional(
    Type.Object({
      url: Type.String(),
      index: Type.Number(),
      position: Type.Number(),
      unreadable: Type.Boolean(),
    }),
  ),
});
const Problem = Type.Object({
  ...Times,
  type: Type.Enum(['gap', 'overlap', 'unreadable']),
  program: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
});
/** Guide of a channel of this definition by the called node's files. */
const GUIDE = definePeerCall(
  'channels/guide',
  Type.Object({
    vhost: Type.String(),
    app: Type.String(),
    spec: Type.Unknown(),
    from: Type.Number(),
    to: Type.Number(),
  }),
  Type.Object({
    entries: Type.Array(Entry),
    isCut: Type.Boolean(),
    problems: Type.Array(Problem),
    unmeasured: Type.Number(),
  }),
);

export interface ChannelGuide extends Guide {
  /** Number of files of unknown length: each counts as playing until the next program. */
  readonly unmeasured: number;
}

/** In milliseconds since the epoch. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface GuidesOptions {
  readonly registry: Registry;
  readonly tasks: Pick<Tasks, 'owner'>;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
  readonly filesOf: (application: Application) => Promise<MediaFiles>;
}

/** Reports the coming items of scheduled channels, by the files of the nodes that run them. */
export class Guides {
  readonly #options: GuidesOptions;

  constructor(options: GuidesOptions) {
    this.#options = options;
    options.calls.answer(GUIDE, async ({ vhost, app, spec, ...span }) => {
      const known = readScheduleSpec(spec);
      if (known === undefined) throw kilnError('callUnknown');
      return carried(await this.here(options.registry.vhost(vhost).application(app), known, span));
    });
  }

  /**
   * Guide of a channel. Where no node runs it, the guide of the node that can read most of its files counts.
   * @throws ownerUnreachable, ownerSilent, callUnknown
   */
  async of(application: Application, name: string, spec: ScheduleSpec, span: Span): Promise<ChannelGuide> {
    const { tasks, others } = this.#options;
    const { vhost, name: app } = application;
    const owner = tasks.owner({ kind: SCHEDULED.name, vhost: vhost.name, app, id: name });
    const request = { vhost: vhost.name, app, spec, ...span };
    if (owner !== undefined && !isSameIncarnation(owner, others.self)) {
      const { answer, error } = await others.askOne(owner, GUIDE, request, ANSWER_MS);
      if (answer === undefined) throw error ?? kilnError('ownerUnreachable');
      return answer;
    }
    const here = await this.here(application, spec, span);
    if (owner !== undefined || unreadableIn(here) === 0) return here;
    const replies = await others.ask(GUIDE, request, ANSWER_MS);
    const all = [here, ...replies.flatMap(({ answer }) => answer ?? [])];
    return all.reduce((best, one) => (unreadableIn(one) < unreadableIn(best) ? one : best));
  }

  /** Guide by the files of this node. */
  async here(application: Application, spec: ScheduleSpec, span: Span): Promise<ChannelGuide> {
    const files = await this.#options.filesOf(application);
    const unreadable = new Set<string>();
    const urls = spec.programs.flatMap(({ items }) => items.map(({ url }) => url));
    const late = new AbortController();
    const looked = files.measure(urls, (url) => unreadable.add(url), late.signal);
    await within(FILES_MS, looked);
    late.abort();
    const isReadable = (url: string): boolean => !unreadable.has(url);
    const guide = guideOf(spec, { ...span, now: Date.now(), lengthOf: files.lengthOf, isReadable });
    const isUnmeasured = (url: string): boolean =>
      readStreamUrl(url) === undefined && isReadable(url) && files.lengthOf(url) === undefined;
    return { ...guide, unmeasured: new Set(urls.filter(isUnmeasured)).size };
  }
}

function unreadableIn({ problems }: Guide): number {
  return problems.filter(({ type }) => type === 'unreadable').length;
}

/** Mutable copy. */
function carried({ entries, problems, ...rest }: ChannelGuide): Static<typeof GUIDE.answer> {
  return { ...rest, entries: [...entries], problems: [...problems] };
}
