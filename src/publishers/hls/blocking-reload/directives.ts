import { kilnError } from '../../../errors.ts';
import type { Directives } from '../answer/played-stream.ts';

const NONE: Directives = { msn: undefined, part: undefined, skip: false, legacy: false, rewinds: true };
const REWIND = '_HLS_rewind';
const NUMBER = /^\d{1,15}$/;
/** As hls.js and most players write them, which needs no general reader of queries. */
const USUAL = /^_HLS_msn=(\d{1,15})(?:&_HLS_part=(\d{1,15}))?(?:&_HLS_skip=(YES|v2))?$/;

/** @param query raw query of the request, without `?` @throws playlistDirective */
export function parseDirectives(query: string): Directives {
  if (!query.includes('_HLS_')) return NONE;
  const usual = USUAL.exec(query);
  if (usual !== null) {
    const [, msn, part, skip] = usual;
    return {
      msn: Number(msn),
      part: part === undefined ? undefined : Number(part),
      skip: skip !== undefined,
      legacy: false,
      rewinds: true,
    };
  }
  const values = new URLSearchParams(query);
  const msn = number(values, '_HLS_msn');
  const part = number(values, '_HLS_part');
  if (part !== undefined && msn === undefined) throw kilnError('playlistDirective', '_HLS_part without _HLS_msn');
  const skip = values.get('_HLS_skip');
  return {
    msn,
    part,
    skip: skip === 'YES' || skip === 'v2',
    legacy: values.get('_HLS_legacy') === 'YES',
    rewinds: values.get(REWIND) !== 'NO',
  };
}

/** For a kind of HLS without delivery directives. @param query as of `parseDirectives` */
export function withoutDirectives(query: string): Directives {
  return query.includes(REWIND) ? { ...NONE, rewinds: new URLSearchParams(query).get(REWIND) !== 'NO' } : NONE;
}

/** Query for the children of a master playlist: that of the master without the directives for one chunklist state. */
export function handedOn(query: string): string {
  if (query === '') return '';
  const pairs = query.split('&').filter((pair) => pair !== '' && !/^_HLS_(msn|part|skip)(=|$)/.test(pair));
  return pairs.join('&').replace(/["\r\n<>\\]/g, encodeURIComponent);
}

function number(values: URLSearchParams, name: string): number | undefined {
  const value = values.get(name);
  if (value === null) return undefined;
  if (!NUMBER.test(value)) throw kilnError('playlistDirective', `${name} is not a number`);
  return Number(value);
}
