import { cutsCredentials } from './fragment.ts';

const MAX_REASON = 500;
/** Of what an origin says no more is looked at. */
const MAX_READ = 4096;
const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i;
const HOST = /^(?:\[[\da-f:.]+\]|[^\s:@[\]]*)(?::\d*)?$/i;

/** A URL for the log: without what secrets are in, its user with the password, and its query. */
export function shownUrl(url: string): string {
  const scheme = SCHEME.exec(url)?.[0];
  const [rest = ''] = url.slice(scheme?.length ?? 0).split(/[?#]/);
  const [authority = ''] = rest.split('/');
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  // what is no host may be a part of a password that should have been escaped
  if (!HOST.test(host) || cutsCredentials(url)) return `${scheme ?? ''}...`;
  return `${scheme ?? ''}${host}${rest.slice(authority.length)}`.slice(0, 300);
}

/** On one line, without secrets of URLs, and not too long. */
export function shownReason(reason: string): string {
  return (
    reason
      .slice(0, MAX_READ)
      // a password may have what ends a URL in a sentence
      .replace(/[a-z][a-z\d+.-]{0,20}:\/\/(?:[^\s/?#]*@)?[^\s"'<>()]+/gi, shownUrl)
      .replace(/[\p{C}\s]+/gu, ' ')
      .trim()
      .slice(0, MAX_REASON)
  );
}
