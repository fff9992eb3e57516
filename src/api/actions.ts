import type { FastifyInstance } from 'fastify';
import { kilnError } from '../errors.ts';

interface Action {
  /** Paths that ask for it. */
  readonly paths: RegExp;
  readonly methods: string[];
}

/** Where a request in absolute form (RFC 9112, 3.2.2) names the server. */
const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;
/** Viewers choose the names of their sessions, colons included. */
const SESSION = /\/sessions\/[^/]*$/;

/**
 * Tells actions from names in the paths of the routes that are registered after it (docs/compatibility.md#rest-answers): a colon
 * begins an action, and one that belongs to a name is written `%3A`. An action that there is not fails with
 * controllerNotFound, one that is asked for by another method with methodNotAllowed, whatever it is about.
 */
export function tellActions(app: FastifyInstance): void {
  const actions = new Map<string, Action>();
  app.addHook('onRoute', ({ url, method }) => {
    if (!isAction(url)) return;
    const { paths, methods } = actions.get(url) ?? { paths: pathsOf(url), methods: [] };
    actions.set(url, { paths, methods: [...methods, ...[method].flat()] });
  });
  app.addHook('onRequest', ({ url, method, routeOptions }, reply, done) => {
    const [path = ''] = url.replace(AUTHORITY, '').split(/[?#]/);
    const asksForAction = path.replace(SESSION, '').includes(':');
    if (!asksForAction) {
      // what is decoded reads like an action, too
      const { url: route } = routeOptions;
      return done(route !== undefined && isAction(route) ? kilnError('controllerNotFound') : undefined);
    }
    const action = [...actions.values()].find(({ paths }) => paths.test(path));
    if (action === undefined) return done(kilnError('controllerNotFound'));
    if (action.methods.includes(method)) return done();
    reply.header('allow', action.methods.join(', '));
    done(kilnError('methodNotAllowed', method));
  });
}

/** Whether the URL of a route, in which a colon is doubled, ends with an action. */
function isAction(route: string): boolean {
  return route.includes('::');
}

function pathsOf(route: string): RegExp {
  const form = route.replaceAll(/(?<=\/):\w+(?:\([^)]*\))?/g, '[^/:]+').replace('::', ':');
  return new RegExp(`^${form}$`);
}
