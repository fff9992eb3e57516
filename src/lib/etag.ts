/** Whether `If-None-Match` names an entity tag: by weak comparison, RFC 9110 section 13.1.2. */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === etag);
}

/** Whether `If-Match` names an entity tag, in quotes: by strong comparison, RFC 9110 section 13.1.1. The caller handles `*`. */
export function namesEtag(ifMatch: string, etag: string): boolean {
  for (const [, weak, tag] of ifMatch.matchAll(/(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g))
    if (weak === undefined && tag === etag) return true;
  return false;
}
