// Runs while the rest of the page is loading: requests what it shows first and opens the event stream.
import { findUser, followSession, user } from './session';
import { firstSearch, requestFirstRows } from './workbench/firstRows';

const search = user.value ? firstSearch(location) : undefined;
if (search) requestFirstRows(search);
followSession();
void findUser();
