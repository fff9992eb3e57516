import type { ChunklistForm } from '../../../packaging/playlist.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import {
  STARTING,
  type ChunklistAnswer,
  type Directives,
  type FileAnswer,
  type Hold,
  type OnLeft,
  type Viewer,
} from '../answer/played-stream.ts';
import { holdFor } from './held-requests.ts';
import type { Repeats } from './repeats.ts';
import type { Wait } from './wait.ts';
import { endsWith, has, isDueSoon, markOf, tooFar, type Position } from './chunklist-position.ts';
import type { Text } from '../answer/text.ts';
import type { Outcome } from './waiters.ts';

/** A media playlist, packaged on any node. */
export interface Chunklist {
  /** undefined before the first part. */
  readonly position: Position | undefined;
  /** Continues an earlier playlist: an empty answer would stop its players. */
  readonly continues: boolean;
  /** The publisher has left, and may return. */
  readonly interrupted: boolean;
  /** Tests whether it is that of a video, which players load first. */
  readonly leads: boolean;
  /** Seconds. */
  readonly targetDuration: number;
  readonly repeats: Repeats;
  /** @param rewinds with the past, where there is one */
  text(form: ChunklistForm, rewinds: boolean): Text | Promise<Text>;
  /** @throws tooManyWaiting */
  wait(ready: () => boolean, onLeft: OnLeft, wait: Wait): Promise<Outcome>;
}

/**
 * Answers with the chunklist that a player asks for, once it exists (RFC 8216bis 6.2.5.2). While the publisher is away, players get
 * the chunklist that they know: they ask again, where an error would make them give up. A player that names nothing gets the same
 * state again only after a pause: some would ask as fast as they are answered.
 * @param viewer undefined when it is not counted
 * @param since arrival of the request, in milliseconds since the epoch
 * @throws playlistDirective, playlistOverdue, streamInterrupted, fileNotFound, tooManyWaiting
 */
export function answerChunklist(
  of: Chunklist,
  directives: Directives,
  hold: Hold,
  viewer: Viewer | undefined,
  since = Date.now(),
): FileAnswer | Promise<FileAnswer> {
  const { position } = of;
  if (position === undefined) return of.continues ? answerBegun(of, directives, hold, viewer, since) : STARTING;
  const { part, skip, legacy } = directives;
  // many players take a playlist without a complete segment for an empty one
  const msn = directives.msn ?? (position.newest === undefined ? position.open?.msn : undefined);
  const wanted = legacy ? undefined : part;
  const form = legacy ? 'legacy' : skip ? 'delta' : 'full';
  const repeater = directives.msn === undefined && !skip && position.ended !== true ? viewer : undefined;
  if (msn === undefined || has(position, msn, wanted)) {
    const pause =
      repeater === undefined ? 0 : of.repeats.pauseOf(repeater, form, stateMark(position, form), of.targetDuration);
    return pause > 0 ? answerLater(of, form, directives, hold, viewer, pause) : answer(of, form, directives, repeater);
  }
  if (tooFar(position, msn, part)) throw kilnError('playlistDirective', 'too far ahead');
  const ready = (): boolean => of.position !== undefined && has(of.position, msn, wanted);
  const isSoon = of.leads && isDueSoon(position, msn, wanted);
  const what = directives.msn === undefined ? 'first' : isSoon ? 'soon' : 'next';
  return hold((onLeft) => of.wait(ready, onLeft, { since, what })).then((outcome) => {
    if (outcome === 'ready' || (outcome === 'overdue' && of.interrupted)) return answer(of, form, directives, repeater);
    throw outcome === 'overdue' ? kilnError('playlistOverdue') : kilnError('fileNotFound');
  });
}

/** Differs between states of a chunklist that differ in a form: the legacy form has no parts. */
function stateMark(position: Position, form: ChunklistForm): string {
  return form === 'legacy' ? `${position.newest?.msn}` : markOf(position);
}

/** Answers when the chunklist has changed or the pause is over; at once if too many requests wait. */
async function answerLater(
  of: Chunklist,
  form: ChunklistForm,
  directives: Directives,
  hold: Hold,
  viewer: Viewer | undefined,
  pauseMs: number,
): Promise<ChunklistAnswer> {
  const mark = of.position && stateMark(of.position, form);
  const changed = (): boolean => (of.position && stateMark(of.position, form)) !== mark;
  try {
    await hold((onLeft) =>
      holdFor(pauseMs)((onLate) => {
        const onOver = (cancel: () => void): void => [onLeft, onLate].forEach((on) => on(cancel));
        return of.wait(changed, onOver, { since: Date.now(), what: 'next' });
      }),
    );
  } catch (error) {
    if (!(error instanceof KilnError) || error.code !== 'tooManyWaiting') throw error;
  }
  return await answer(of, form, directives, viewer);
}

async function answerBegun(
  of: Chunklist,
  directives: Directives,
  hold: Hold,
  viewer: Viewer | undefined,
  since: number,
): Promise<FileAnswer> {
  const outcome = await hold((onLeft) => of.wait(() => of.position !== undefined, onLeft, { since, what: 'first' }));
  if (outcome === 'gone') throw kilnError('fileNotFound');
  if (of.position === undefined) throw kilnError('streamInterrupted');
  return await answerChunklist(of, directives, hold, viewer, since);
}

function answer(
  of: Chunklist,
  form: ChunklistForm,
  directives: Directives,
  repeater: Viewer | undefined,
): ChunklistAnswer | Promise<ChunklistAnswer> {
  if (repeater !== undefined && of.position !== undefined)
    of.repeats.note(repeater, form, stateMark(of.position, form));
  const text = of.text(form, directives.rewinds);
  if (text instanceof Promise) return text.then((there) => toAnswer(of, there, directives));
  return toAnswer(of, text, directives);
}

function toAnswer({ position }: Chunklist, text: Text, { msn, part }: Directives): ChunklistAnswer {
  const asNamed = position !== undefined && msn !== undefined && endsWith(position, msn, part);
  return { kind: 'chunklist', text, asNamed };
}
