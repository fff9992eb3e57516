import type { FastifyInstance } from 'fastify';
import { kilnError } from '../errors.ts';

interface Action {
  /** Matches the paths of the action. */
  readonly paths: RegExp;
  readonly methods: string[];
}

/** The server in a request target in absolute form (RFC 9112 section 3.2.2). */
const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;
/** Without these characters a URL neither asks for an action nor matches the route of one. */
const COLON = /[:%]/;
/** Names of sessions come from viewers, and may contain colons. */
const SESSION = /\/sessions\/[^/]*$/;

/**
 * Distinguishes actions from names in the paths of the routes that are registered after it (docs/compatibility.md#rest-answers): a
 * colon begins an action, and a colon in a name is written `%3A`. An unknown action fails with controllerNotFound, one that is
 * called with another method with methodNotAllowed, whatever object the path names.
 */
export function tellActions(app: FastifyInstance): void {
  const actions = new Map<string, Action>();
  app.addHook('onRoute', ({ url, method }) => {
    if (!isAction(url)) return;
    const { paths, methods } = actions.get(url) ?? { paths: pathsOf(url), methods: [] };
    actions.set(url, { paths, methods: [...methods, ...[method].flat()] });
  });
  app.addHook('onRequest', (request, reply, done) => {
    const { url, method } = request;
    if (!COLON.test(url)) return done();
    const [path = ''] = url.replace(AUTHORITY, '').split(/[?#]/);
    const asksForAction = path.replace(SESSION, '').includes(':');
    if (!asksForAction) {
      // a name with a decoded colon matches the route of an action, too
      const { url: route } = request.routeOptions;
      return done(route !== undefined && isAction(route) ? kilnError('controllerNotFound') : undefined);
    }
    const action = [...actions.values()].find(({ paths }) => paths.test(path));
    if (action === undefined) return done(kilnError('controllerNotFound'));
    if (action.methods.includes(method)) return done();
    reply.header('allow', action.methods.join(', '));
    done(kilnError('methodNotAllowed', method));
  });
}

/** Whether the URL of a route, in which colons are doubled, ends with an action. */
function isAction(route: string): boolean {
  return route.includes('::');
}

function pathsOf(route: string): RegExp {
  const form = route.replaceAll(/(?<=\/):\w+(?:\([^)]*\))?/g, '[^/:]+').replace('::', ':');
  return new RegExp(`^${form}$`);
}
