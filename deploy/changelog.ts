const UNRELEASED = '## [Unreleased]';
/** Groups that stand empty below *Unreleased*, for what follows. */
const GROUPS = ['Added', 'Changed', 'Fixed'];

/**
 * Gives what is below *Unreleased* the heading of a version, without its empty groups.
 * @param changelog in the format of Keep a Changelog, with a link for each version at its end
 * @param date `2026-11-29`
 * @throws Error when there is nothing to release, or the version has a heading already
 */
export function releaseChangelog(changelog: string, version: string, date: string): string {
  if (changelog.includes(`\n## [${version}]`)) throw new Error(`CHANGELOG.md has a heading for ${version} already`);
  const start = changelog.indexOf(`\n${UNRELEASED}\n`) + 1;
  const end = changelog.indexOf('\n## [', start);
  if (start === 0 || end === -1) throw new Error(`CHANGELOG.md has no "${UNRELEASED}" above an earlier version`);
  const [introduction = '', ...groups] = changelog.slice(start + UNRELEASED.length, end).split(/^(?=### )/m);
  const filled = groups.filter((group) => /^- /m.test(group));
  if (filled.length === 0) throw new Error(`CHANGELOG.md has nothing below "${UNRELEASED}"`);
  const empty = GROUPS.map((name) => `### ${name}\n\n`).join('');
  const heading = `[${version}] - ${date}`;
  const link = `[${version}]: #${anchor(heading)}\n`;
  return (
    `${changelog.slice(0, start)}${UNRELEASED}\n\n${empty}` +
    `## ${heading}\n\n${[introduction.trimStart(), ...filled].join('').trimEnd()}\n` +
    changelog.slice(end).replace(/^(\[Unreleased\]: .*\n)/m, `$1${link}`)
  );
}

/** As forges make it of a heading. */
function anchor(heading: string): string {
  return heading.replaceAll(/[^\d\w\s-]/g, '').replaceAll(' ', '-');
}
