/** Whether `If-None-Match` names an entity tag: by weak comparison, RFC 9110 section 13.1.2. */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === etag);
}
