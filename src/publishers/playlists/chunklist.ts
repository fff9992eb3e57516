import type { ChunklistForm } from '../../packaging/playlist.ts';
import { kilnError } from '../../errors.ts';
import { STARTING, type ChunklistAnswer, type FileAnswer, type Hold, type OnLeft } from './answer.ts';
import type { Directives } from './directives.ts';
import type { Wait } from './wait.ts';
import { endsWith, has, tooFar, type Position } from './position.ts';
import type { Text } from './text.ts';
import type { Outcome } from './waiters.ts';

/** A rendition, wherever it is packaged. */
export interface Chunklist {
  /** undefined before the first part. */
  readonly position: Position | undefined;
  /** Its players have seen a playlist before: an empty answer would end them. */
  readonly continues: boolean;
  /** Its publisher has gone, and may return. */
  readonly interrupted: boolean;
  text(form: ChunklistForm): Text | Promise<Text>;
  /**
   * @throws tooManyWaiting
   */
  wait(ready: () => boolean, onLeft: OnLeft, wait: Wait): Promise<Outcome>;
}

/**
 * The chunklist that a player asks for, when it is there (RFC 8216bis 6.2.5.2). While the publisher is away players get
 * the one that they know: they ask again, where an error would make them give up.
 * @param since when the request came, in milliseconds since the epoch
 * @throws playlistDirective, playlistOverdue, streamInterrupted, fileNotFound, tooManyWaiting
 */
export function answerChunklist(
  of: Chunklist,
  directives: Directives,
  hold: Hold,
  since = Date.now(),
): FileAnswer | Promise<FileAnswer> {
  const { position } = of;
  if (position === undefined) return of.continues ? answerBegun(of, directives, hold, since) : STARTING;
  const { part, skip, legacy } = directives;
  // many players take a playlist without a complete segment for an empty one
  const msn = directives.msn ?? (position.newest === undefined ? position.open?.msn : undefined);
  const wanted = legacy ? undefined : part;
  const form = legacy ? 'legacy' : skip ? 'delta' : 'full';
  if (msn === undefined || has(position, msn, wanted)) return answer(of, form, directives);
  if (tooFar(position, msn, part)) throw kilnError('playlistDirective', 'too far ahead');
  const ready = (): boolean => of.position !== undefined && has(of.position, msn, wanted);
  const what = directives.msn === undefined ? 'first' : 'next';
  return hold((onLeft) => of.wait(ready, onLeft, { since, what })).then((outcome) => {
    if (outcome === 'ready' || (outcome === 'overdue' && of.interrupted)) return answer(of, form, directives);
    throw outcome === 'overdue' ? kilnError('playlistOverdue') : kilnError('fileNotFound');
  });
}

async function answerBegun(of: Chunklist, directives: Directives, hold: Hold, since: number): Promise<FileAnswer> {
  const outcome = await hold((onLeft) => of.wait(() => of.position !== undefined, onLeft, { since, what: 'first' }));
  if (outcome === 'gone') throw kilnError('fileNotFound');
  if (of.position === undefined) throw kilnError('streamInterrupted');
  return await answerChunklist(of, directives, hold, since);
}

function answer(
  of: Chunklist,
  form: ChunklistForm,
  directives: Directives,
): ChunklistAnswer | Promise<ChunklistAnswer> {
  const text = of.text(form);
  if (text instanceof Promise) return text.then((there) => toAnswer(of, there, directives));
  return toAnswer(of, text, directives);
}

function toAnswer({ position }: Chunklist, text: Text, { msn, part }: Directives): ChunklistAnswer {
  const asNamed = position !== undefined && msn !== undefined && endsWith(position, msn, part);
  return { kind: 'chunklist', text, asNamed };
}
