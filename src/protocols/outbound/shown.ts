import { cutsCredentials } from './fragment.ts';

const MAX_REASON = 500;
/** Characters of an origin's message that are processed. */
const MAX_READ = 4096;
const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i;
const HOST = /^(?:\[[\da-f:.]+\]|[^\s:@[\]]*)(?::\d*)?$/i;

/** Formats a URL for the log, without the parts that may hold secrets: user, password and query. */
export function shownUrl(url: string): string {
  const scheme = SCHEME.exec(url)?.[0];
  const [rest = ''] = url.slice(scheme?.length ?? 0).split(/[?#]/);
  const [authority = ''] = rest.split('/');
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  // an invalid host may be part of a password that was not escaped
  if (!HOST.test(host) || cutsCredentials(url)) return `${scheme ?? ''}...`;
  return `${scheme ?? ''}${host}${rest.slice(authority.length)}`.slice(0, 300);
}

/** Formats a message for the log: one line, of limited length, without secrets of URLs. */
export function shownReason(reason: string): string {
  return (
    reason
      .slice(0, MAX_READ)
      // a password may contain characters that end a URL in a sentence
      .replace(/[a-z][a-z\d+.-]{0,20}:\/\/(?:[^\s/?#]*@)?[^\s"'<>()]+/gi, shownUrl)
      .replace(/[\p{C}\s]+/gu, ' ')
      .trim()
      .slice(0, MAX_REASON)
  );
}
